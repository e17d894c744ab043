// Command pluginarchives checks the archives of the kubectl plugin against the krew manifest beside them, before they are released:
//
//	pluginarchives FOLDER
//
// hack/plugin-archives.sh runs it on the archives that it built. It exists because the ordinary tools, goreleaser for the archives and
// 'kubectl krew install --manifest --archive' for the check, are downloads that builds of this repository do without.
package main

import (
	"fmt"
	"os"
)

// plugin is the package that the archives have the program of.
const plugin = "github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pluginarchives FOLDER")
		os.Exit(2)
	}
	checked, err := check(os.Args[1], plugin)
	for _, archive := range checked {
		fmt.Println(archive, "ok")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
