package main

import (
	"crypto"
	"flag"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/module/source"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// bindKeys adds the flags for keys.
func (o *options) bindKeys(flags *flag.FlagSet) {
	flags.Var(&o.moduleSourceKeys, "module-source-key",
		"File with a public key (ECDSA or Ed25519, in PEM). Every module from a registry must be signed by one of these "+
			"keys, as with 'cosign sign --key'; may be repeated. Default: digests suffice.")
	flags.StringVar(&o.moduleKeyFile, "module-key-file", "",
		"File with at least 32 random bytes, or folder of such files, to sign the modules stored for Machines. The first "+
			"by name signs, all verify. Unsigned modules are not used. Keep the keys out of the Machines' namespace. "+
			"Default: none; anyone who may write Secrets there can replace a stored module.")
	flags.StringVar(&o.stateKeyFile, "state-key-file", "",
		"File with a line of at least 32 random characters, or folder of such files, to encrypt the Machines' states. The "+
			"first by name encrypts, all decrypt. Keep the keys out of the Machines' namespace and keep a copy: without them "+
			"no state can be read. Default: states are stored unencrypted.")
	flags.BoolVar(&o.stateEncryption, "state-encryption", true,
		"Encrypt with the first key of --state-key-file. If false, encrypted states are read and rewritten unencrypted.")
}

// readSourceKeys reads the keys that must have signed modules from a registry.
func (o *options) readSourceKeys() ([]crypto.PublicKey, error) {
	var keys []crypto.PublicKey
	for _, file := range o.moduleSourceKeys {
		key, err := source.ReadPublicKey(file)
		if err != nil {
			return nil, fmt.Errorf("--module-source-key: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readModuleKeys reads the keys that sign stored modules, if any.
func (o *options) readModuleKeys() error {
	if o.moduleKeyFile == "" {
		return nil
	}
	keys, err := store.ReadKeys(o.moduleKeyFile)
	if err != nil {
		return fmt.Errorf("--module-key-file: %w", err)
	}
	o.moduleKeys = keys
	return nil
}

// readStateKeys reads the keys that encrypt states, if any.
func (o *options) readStateKeys() error {
	if o.stateKeyFile == "" {
		return nil
	}
	keys, err := state.ReadKeys(o.stateKeyFile)
	if err != nil {
		return fmt.Errorf("--state-key-file: %w", err)
	}
	if !o.stateEncryption {
		keys = keys.DecryptOnly()
	}
	o.stateKeys = keys
	return nil
}
