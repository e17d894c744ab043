// Package statefile reads what an engine writes down of its resources: a state of Terraform or OpenTofu, or a checkpoint of Pulumi in the
// envelope that gives it a serial and a lineage. [Parse] reads either, and [Compare] says what one state lists that another does not.
package statefile
