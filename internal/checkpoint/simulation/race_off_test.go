//go:build !race

package simulation

// histories is how many are played.
const histories = 5000

// depth is how many things happen at most in a search.
const depth = 2
