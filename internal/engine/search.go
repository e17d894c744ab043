package engine

// Search is the folder of a module that finds objects in the infrastructure. Its files run together
// with those of the module, or instead of a stack's program.
type Search string

// The searches that a module may have.
const (
	// SearchNone runs the module alone.
	SearchNone Search = ""
	// SearchLookup finds the instance of an interrupted create by the Machine's UID.
	SearchLookup Search = "lookup"
	// SearchAdopt finds an instance that this operator did not create, by its provider ID or ID.
	SearchAdopt Search = "adopt"
	// SearchInventory lists the instances of a cluster.
	SearchInventory Search = "inventory"
	// SearchCapacity reads the size of an instance type.
	SearchCapacity Search = "capacity"
)

// Searches are all searches.
var Searches = []Search{SearchLookup, SearchAdopt, SearchInventory, SearchCapacity}

// Reads reports whether the search is only planned, for an output, and has no state.
func (s Search) Reads() bool { return s == SearchInventory || s == SearchCapacity }
