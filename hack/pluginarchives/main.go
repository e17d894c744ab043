// Command pluginarchives holds the archives of the kubectl plugin to the krew manifest beside them, before anybody gets them:
//
//	pluginarchives FOLDER
//
// hack/plugin-archives.sh runs it on what it has made.
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
