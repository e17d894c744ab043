// Package pulumikeys stores the keys that encrypt a cluster's checkpoints in one Secret in the manager's namespace.
// There is one key, except during a rotation: [Keys.Rotate] adds a key and makes it current, later runs encrypt their
// checkpoints with it, and [Keys.Prune] removes older keys once [Uses] finds no checkpoint encrypted with them.
package pulumikeys
