// Package pulumikeys keeps the keys that the checkpoints of a cluster are encrypted with, in one Secret of the manager's namespace. There
// is one key, and more only while one is being replaced: [Keys.Rotate] adds a key and makes it the current one, every run that follows
// encrypts its checkpoint with it, and [Keys.Prune] removes the older ones once [Uses] finds no checkpoint with them.
package pulumikeys
