//go:build race

package simulation

// histories is how many are played: fewer under the race detector, which makes each much slower.
const histories = 100

// depth is how many things happen at most in a search.
const depth = 1
