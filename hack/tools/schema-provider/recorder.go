package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// record reads the output of `providers schema -json` and writes a record: the schema of one provider, cut to what is named, one
// resource a line, without descriptions and without required arguments of the provider itself.
func record(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	address := flags.String("provider", "", "The provider, as registry.opentofu.org/hashicorp/aws.")
	like := flags.String("like", "", "A record, as aws-6.25.0, whose resources and data sources are kept.")
	also := flags.String("also", "", "More resources and data sources to keep, joined by commas.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var all recordedDocument
	if err := json.NewDecoder(in).Decode(&all); err != nil {
		return fmt.Errorf("reading the schema from standard input: %w", err)
	}
	full, found := all.Providers[*address]
	if !found {
		return fmt.Errorf("the schema of -provider=%q is not there, but %q", *address, slices.Sorted(maps.Keys(all.Providers)))
	}
	keep, err := names(*like, *also)
	if err != nil {
		return err
	}
	unwanted := func(name string, _ recordedSchema) bool { return !keep[name] }
	maps.DeleteFunc(full.Resources, unwanted)
	maps.DeleteFunc(full.DataSources, unwanted)
	var missing []string
	for name := range keep {
		_, isResource := full.Resources[name]
		_, isDataSource := full.DataSources[name]
		if !isResource && !isDataSource {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("the provider has no %s", strings.Join(missing, ", "))
	}
	// A provider requires such an argument only while the environment variable that stands for it is unset. In runs and plans it is set.
	for name, argument := range full.Provider.Block.Attributes {
		argument.Optional = argument.Optional || argument.Required
		argument.Required = false
		full.Provider.Block.Attributes[name] = argument
	}
	content, err := format(*address, full)
	if err != nil {
		return err
	}
	if _, err := parseRecord(content); err != nil {
		return fmt.Errorf("checking the record: %w", err)
	}
	_, err = out.Write(content)
	return err
}

// names returns what a record keeps.
func names(like, also string) (map[string]bool, error) {
	keep := map[string]bool{}
	if like != "" {
		content, err := records.ReadFile("schemas/" + like + ".json")
		if err != nil {
			return nil, fmt.Errorf("reading the record that -like names: %w", err)
		}
		schema, err := parseRecord(content)
		if err != nil {
			return nil, fmt.Errorf("reading the record that -like names: %w", err)
		}
		for name := range schema.Resources {
			keep[name] = true
		}
		for name := range schema.DataSources {
			keep[name] = true
		}
	}
	for name := range strings.SplitSeq(also, ",") {
		if name != "" {
			keep[name] = true
		}
	}
	if len(keep) == 0 {
		return nil, errors.New("nothing would be kept; name a record with -like or resources with -also")
	}
	return keep, nil
}

// format writes a record so that a change of a resource is a change of a line.
func format(address string, recorded recordedProvider) ([]byte, error) {
	var text bytes.Buffer
	var failed error
	put := func(indent, name string, value any, end string) {
		content, err := json.Marshal(value)
		failed = errors.Join(failed, err)
		fmt.Fprintf(&text, "%s%q: %s%s\n", indent, name, content, end)
	}
	section := func(name string, described map[string]recordedSchema, end string) {
		fmt.Fprintf(&text, "      %q: {\n", name)
		sorted := slices.Sorted(maps.Keys(described))
		for i, one := range sorted {
			comma := ","
			if i == len(sorted)-1 {
				comma = ""
			}
			put("        ", one, described[one], comma)
		}
		fmt.Fprintf(&text, "      }%s\n", end)
	}
	fmt.Fprintf(&text, "{\n  \"format_version\": \"1.0\",\n  \"provider_schemas\": {\n    %q: {\n", address)
	put("      ", "provider", recorded.Provider, ",")
	section("resource_schemas", recorded.Resources, ",")
	section("data_source_schemas", recorded.DataSources, "")
	text.WriteString("    }\n  }\n}\n")
	return text.Bytes(), failed
}
