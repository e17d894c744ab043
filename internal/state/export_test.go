package state

// DecodeIndex exports decodeIndex to tests.
var DecodeIndex = decodeIndex
