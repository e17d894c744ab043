// Package orphans checks all states of a namespace. It reports states whose Machine is gone, for
// example because its finalizer was removed by hand. It destroys none unless requested, because the
// state may be the only record of an instance. Since it reads every state, it also stores the
// modules that states need, removes others, and re-encrypts states with the current key.
//
// The inventory is the opposite direction. It lists the cluster's instances, if a module can, and
// reports those that belong to no Machine and no state.
package orphans
