package main

import (
	"crypto"
	"flag"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/module/source"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state/encryption"
)

// bindKeys adds the flags of keys.
func (o *options) bindKeys(flags *flag.FlagSet) {
	flags.Var(&o.moduleSourceKeys, "module-source-key", "File with a public key (ECDSA or Ed25519, in PEM) of which one must have signed every module from a registry, as 'cosign sign --key' does; may be repeated. Default: their digests are enough.")
	flags.StringVar(&o.moduleKeyFile, "module-key-file", "", "File with 32 random bytes or more, or folder of several, that sign the modules which are stored for Machines; the first by name signs, all verify. What is stored and not signed is not used. Keep it out of the namespace of the Machines. Default: whoever may write Secrets there can store another module.")
	flags.StringVar(&o.stateKeyFile, "state-key-file", "", "File with a line of 32 random characters or more, or folder of several, that encrypt what is stored of the Machines' states; the first by name encrypts, all decrypt. Keep it out of the namespace of the Machines, and a copy elsewhere: without it no state can be read. Default: states are stored as the engine writes them.")
	flags.BoolVar(&o.stateEncryption, "state-encryption", true, "Whether the first key of --state-key-file encrypts. With false, states that are encrypted are read and written as the engine writes them, to switch encryption off.")
}

// readSourceKeys reads the keys of which one must have signed what comes from a registry.
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

// readModuleKeys reads the keys that sign stored modules, if there are any.
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

// readStateKeys reads the keys that encrypt states, if there are any.
func (o *options) readStateKeys() error {
	if o.stateKeyFile == "" {
		return nil
	}
	keys, err := encryption.Read(o.stateKeyFile)
	if err != nil {
		return fmt.Errorf("--state-key-file: %w", err)
	}
	if !o.stateEncryption {
		keys = keys.DecryptOnly()
	}
	o.stateKeys = keys
	return nil
}
