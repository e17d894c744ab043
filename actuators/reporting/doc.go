// Package reporting reports the outcome of a verb or a run: as a Machine API error, as an event of
// the Machine, and in metrics. It decides nothing and reads only its arguments.
package reporting
