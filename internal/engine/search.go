package engine

// Search names a folder of a module with what finds objects in the infrastructure. Its files run beside those of the module, or in place of its
// program.
type Search string

// The searches that a module may have.
const (
	// SearchNone runs the module alone.
	SearchNone Search = ""
	// SearchLookup finds the instance of an interrupted create by the Machine's UID.
	SearchLookup Search = "lookup"
	// SearchAdopt finds an instance that something else has made, by its provider ID or ID.
	SearchAdopt Search = "adopt"
	// SearchInventory lists the instances of a cluster.
	SearchInventory Search = "inventory"
)

// Searches are all of them.
var Searches = []Search{SearchLookup, SearchAdopt, SearchInventory}
