package main

import "github.com/spf13/cobra"

func newRenderCommand() *cobra.Command { return &cobra.Command{Use: "render"} }
