// Package orphans is the pass over all states of a namespace. It reports states whose Machine is gone, for example because its finalizer was
// removed by hand. None is destroyed unless that is requested: there may be an instance that no other state knows. As it reads every
// state, it also makes sure that the modules that states need are stored, and no others, and that states are encrypted with the key of now.
//
// The inventory is the other direction: it lists the instances of the cluster where a module can, and reports those that belong to no Machine and no
// state.
package orphans
