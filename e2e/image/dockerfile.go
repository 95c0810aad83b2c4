package image

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// FromDockerfile reads the image that a Dockerfile describes. It knows what can
// be carried out without running anything: FROM scratch, COPY of single files,
// ENTRYPOINT, CMD (exec form), ENV, USER, WORKDIR and LABEL; anything else is an
// error. COPY sources are relative to the directory context.
func FromDockerfile(name, dockerfile, context string) (Image, error) {
	data, err := os.ReadFile(dockerfile)
	if err != nil {
		return Image{}, err
	}
	i := Image{Name: name, Files: map[string]string{}, Labels: map[string]string{}}
	for _, line := range instructions(string(data)) {
		if err := i.apply(line, context); err != nil {
			return Image{}, fmt.Errorf("%s: %q: %w", dockerfile, line, err)
		}
	}
	return i, nil
}

// instructions drops comments and joins continued lines.
func instructions(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	joined := strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", " ")
	return strings.Split(joined, "\n")
}

func (i *Image) apply(line, context string) error {
	instruction, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToUpper(instruction) {
	case "FROM":
		if rest != "scratch" {
			return fmt.Errorf("only scratch can be a base")
		}
		return nil
	case "COPY":
		return i.copy(strings.Fields(rest), context)
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &i.Entrypoint)
	case "CMD":
		return json.Unmarshal([]byte(rest), &i.Cmd)
	case "ENV":
		i.Env = append(i.Env, strings.Fields(rest)...)
		return nil
	case "USER":
		i.User = rest
		return nil
	case "WORKDIR":
		i.WorkingDir = rest
		return nil
	case "LABEL":
		return i.label(rest)
	default:
		return fmt.Errorf("unknown instruction")
	}
}

func (i *Image) copy(args []string, context string) error {
	if len(args) != 2 || strings.HasPrefix(args[0], "--") {
		return fmt.Errorf("want one source and one target")
	}
	source, target := filepath.Join(context, args[0]), args[1]
	if strings.HasSuffix(target, "/") {
		target = path.Join(target, path.Base(args[0]))
	}
	i.Files[path.Join("/", target)] = source
	return nil
}

// label takes one label in the form name="value".
func (i *Image) label(arg string) error {
	name, quoted, _ := strings.Cut(arg, "=")
	value, err := strconv.Unquote(quoted)
	if err != nil {
		return fmt.Errorf("want one name=\"value\": %w", err)
	}
	i.Labels[name] = value
	return nil
}
