package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/vmware/govmomi/find"
)

// What tests ask for.
func (i *inventory) serveTag(w http.ResponseWriter, _ *http.Request) { answer(w, i.tag, nil) }

func (i *inventory) serveFile(w http.ResponseWriter, r *http.Request) {
	there, err := i.exists(r.Context(), r.URL.Query().Get("path"))
	answer(w, there, err)
}

func (i *inventory) serveDeny(w http.ResponseWriter, r *http.Request) {
	i.history.deny(r.URL.Query()["method"])
	answer(w, nil, nil)
}

func (i *inventory) serveVM(w http.ResponseWriter, r *http.Request) {
	ctx, path := r.Context(), r.URL.Query().Get("path")
	switch r.Method {
	case http.MethodGet:
		found, err := i.read(ctx, path)
		answer(w, found, err)
	case http.MethodDelete:
		answer(w, nil, i.remove(ctx, path))
	case http.MethodPost:
		answer(w, nil, i.act(r, path))
	default:
		http.Error(w, r.Method, http.StatusMethodNotAllowed)
	}
}

func (i *inventory) serveGroup(w http.ResponseWriter, r *http.Request) {
	ctx, cluster, name := r.Context(), r.URL.Query().Get("cluster"), r.URL.Query().Get("name")
	switch r.Method {
	case http.MethodGet:
		members, err := i.members(ctx, cluster, name)
		answer(w, members, err)
	case http.MethodPost:
		answer(w, nil, i.makeGroup(ctx, cluster, name))
	case http.MethodDelete:
		answer(w, nil, i.emptyGroup(ctx, cluster, name))
	default:
		http.Error(w, r.Method, http.StatusMethodNotAllowed)
	}
}

func (i *inventory) act(r *http.Request, path string) error {
	switch what := r.URL.Query().Get("do"); what {
	case "powerOff":
		return i.powerOff(r.Context(), path)
	case "tag":
		return i.tagCluster(r.Context(), path, r.URL.Query().Get("cluster"))
	case "clone":
		query := r.URL.Query()
		cpus, err := strconv.ParseInt(query.Get("cpus"), 10, 32)
		if err != nil {
			return fmt.Errorf("cpus: %w", err)
		}
		memory, err := strconv.ParseInt(query.Get("memoryMiB"), 10, 64)
		if err != nil {
			return fmt.Errorf("memoryMiB: %w", err)
		}
		return i.clone(r.Context(), path, query.Get("from"), int32(cpus), memory)
	case "configure":
		return i.configure(r.Context(), path)
	case "snapshot":
		return i.snapshot(r.Context(), path, r.URL.Query().Get("name"))
	case "attach":
		file := r.URL.Query().Get("file")
		if err := i.makeFolder(r.Context(), file); err != nil {
			return err
		}
		return i.attach(r.Context(), path, file, r.URL.Query().Get("controller") == "own")
	default:
		return fmt.Errorf("do=%q is not known; write powerOff, tag, clone, configure, snapshot or attach", what)
	}
}

func answer(w http.ResponseWriter, content any, err error) {
	var missing *find.NotFoundError
	switch {
	case errors.As(err, &missing):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		_ = json.NewEncoder(w).Encode(content)
	}
}
