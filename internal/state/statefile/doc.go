// Package statefile reads the states of engines: those of Terraform and OpenTofu, and Pulumi's checkpoints in an
// envelope with a serial and a lineage. [Parse] reads either, and [Compare] finds what one state lists and another does
// not.
package statefile
