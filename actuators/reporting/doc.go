// Package reporting reports the outcome of a verb or a run: as an error of the Machine API, as an event of the Machine, and in metrics. It decides
// nothing, and reads only what it is given.
package reporting
