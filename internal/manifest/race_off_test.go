//go:build !race

package manifest

const slowdown = 1
