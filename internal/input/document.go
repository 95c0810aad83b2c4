package input

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// document is one object as JSON, and where in the input it stands.
type document struct {
	where string
	data  []byte
}

// split cuts an input into its documents. Several JSON objects in a row are no YAML; what begins with a brace may be YAML
// all the same.
func split(data []byte) ([]document, error) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' {
		return splitYAML(data)
	}
	documents, err := splitJSON(data)
	if err != nil && (len(documents) == 0 || bytes.Contains(data, []byte("\n---"))) {
		return splitYAML(data)
	}
	return documents, err
}

func splitYAML(data []byte) ([]document, error) {
	var documents []document
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 1; ; i++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		var converted []byte
		if err == nil {
			converted, err = yaml.YAMLToJSONStrict(text)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, oneLine(err))
		}
		if !bytes.Equal(converted, []byte("null")) { // nothing but comments
			documents = append(documents, document{strconv.Itoa(i), converted})
		}
	}
}

// splitJSON returns the documents in front of an error too.
func splitJSON(data []byte) ([]document, error) {
	var documents []document
	decoder := json.NewDecoder(bytes.NewReader(data))
	for i := 1; ; i++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return documents, fmt.Errorf("document %d: %w", i, oneLine(err))
		}
		documents = append(documents, document{strconv.Itoa(i), raw})
	}
}

// oneLine is an error whose text has no line breaks, as some YAML errors have, and does not say what said it.
func oneLine(err error) error {
	return errors.New(strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
}
