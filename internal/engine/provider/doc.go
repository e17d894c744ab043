// Package provider runs provider plugins as processes of their own, which engines attach to instead of starting one for each run. It knows no
// Kubernetes and nothing of runs: [Start] starts a plugin, and a [Pool] lends plugins that run, each to one run at a time, and ends them.
package provider
