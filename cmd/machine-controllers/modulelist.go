package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/provider"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/modulelist"
)

// listModulesEvery is how soon a provider that is added shows in the list.
const listModulesEvery = time.Minute

// moduleLister publishes the list of modules while it leads.
type moduleLister struct {
	client  client.Client
	catalog *module.Catalog
	options options
}

// Start implements manager.Runnable. The manager runs it only while it leads.
func (l *moduleLister) Start(ctx context.Context) error {
	var last []modulelist.Provider
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		list := l.options.providersOf(l.catalog.Modules())
		if slices.Equal(list, last) {
			return
		}
		if err := modulelist.Write(ctx, l.client, l.options.namespace, list); err != nil {
			ctrl.Log.Error(err, "Cannot list the modules")
			return
		}
		last = list
	}, listModulesEvery)
	return nil
}

// providersOf lists the providers of modules, and whether this manager has them.
func (o *options) providersOf(modules []*module.Module) []modulelist.Provider {
	var list []modulelist.Provider
	for _, m := range modules {
		one := modulelist.Provider{Module: m.Name(), Engine: string(m.Engine())}
		needed := provider.Pinned(m.Files())
		for _, bridged := range m.Packages() {
			if of := bridged.Provider; of != nil {
				needed = append(needed, provider.Requirement{Source: of.Namespace + "/" + of.Type, Version: of.Version})
				continue
			}
			one.Provider, one.Version, one.Status = bridged.Plugin, bridged.Version, o.hasPlugin(bridged)
			list = append(list, one)
		}
		for _, of := range needed {
			one.Provider, one.Version, one.Status = of.Source, of.Version, o.hasProvider(m, of)
			list = append(list, one)
		}
		if len(needed)+len(m.Packages()) == 0 {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b modulelist.Provider) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Provider, b.Provider))
	})
	return list
}

func (o *options) hasProvider(m *module.Module, of provider.Requirement) modulelist.Status {
	terraform := m.Engine() == v1alpha1.EngineTerraform
	switch {
	case terraform && o.jobs.place == inJobs && o.jobs.image != "":
		return modulelist.Unknown
	case o.providerMirror != "" && len(provider.Lacking(o.providerMirror, []provider.Requirement{of})) == 0:
		return modulelist.Present
	case terraform && o.allowDownloads:
		return modulelist.Download
	}
	return modulelist.Missing
}

// hasPlugin looks for one of Pulumi's own plugins.
func (o *options) hasPlugin(of module.Package) modulelist.Status {
	if o.pulumiPlugins == "" {
		return modulelist.Unknown
	}
	if _, err := os.Stat(filepath.Join(o.pulumiPlugins, "resource-"+of.Plugin+"-v"+of.Version)); err != nil {
		return modulelist.Missing
	}
	return modulelist.Present
}
