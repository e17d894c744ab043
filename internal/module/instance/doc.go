// Package instance says what is known of a module's instance before it is made, from the inputs of a run alone: its size, its image and disks,
// and the place that it will be in. What there is to know is declared in module.yaml.
package instance
