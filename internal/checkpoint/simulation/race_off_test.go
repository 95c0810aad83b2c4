//go:build !race

package simulation

// histories is how many are played.
const histories = 5000
