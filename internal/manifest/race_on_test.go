//go:build race

package manifest

// slowdown is by how much less the tests do that repeat something very often: the race detector makes each repetition
// that much slower, and without it all of them are made.
const slowdown = 20
