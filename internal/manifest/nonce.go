package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// A manifest with a nonce is the same manifest with one annotation more. It goes in and comes out again as text, so that
// not a byte of the rest changes, whatever version of Kubernetes the rest was written for.
var (
	annotationsBegin = regexp.MustCompile(`"annotations":\s*\{`)
	nonceLine        = regexp.MustCompile(`^\n      "` + regexp.QuoteMeta(AnnotationNonce) + `": "([1-9]\d{0,8})",`)
)

// withNonce gives a checkpoint's manifest a nonce; 0: none. A checkpoint's annotations come before any other field that
// may be called so, and are never empty.
func withNonce(manifest []byte, nonce int) []byte {
	begin := annotationsBegin.FindIndex(manifest)
	if nonce == 0 || begin == nil {
		return manifest
	}
	return slices.Insert(slices.Clone(manifest), begin[1], fmt.Appendf(nil, "\n      %q: \"%d\",", AnnotationNonce, nonce)...)
}

// withoutNonce undoes withNonce. Of a manifest without a nonce it returns all.
func withoutNonce(data []byte) (manifest []byte, nonce int) {
	begin := annotationsBegin.FindIndex(data)
	if begin == nil {
		return data, 0
	}
	rest := data[begin[1]:]
	line := nonceLine.FindSubmatchIndex(rest)
	if line == nil {
		return data, 0
	}
	nonce, _ = strconv.Atoi(string(rest[line[2]:line[3]]))
	return bytes.Join([][]byte{data[:begin[1]], rest[line[1]:]}, nil), nonce
}
