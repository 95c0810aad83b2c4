package apiclient

import (
	"context"
	"log/slog"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/klog/v2"
)

// LogThrough sends what client-go logs to the agent's logger, at debug: what an outage means is said once by Client, and
// client-go's own complaints about it would bury that. klog is global, so this is for the process's start.
func LogThrough(log zerolog.Logger) {
	klog.SetSlogLogger(slog.New(quiet{zerolog.NewSlogHandler(log)}))
}

// quiet lowers every record to debug, and leaves the time to the agent's logger.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	record.Level, record.Time = slog.LevelDebug, time.Time{}
	return q.Handler.Handle(ctx, record)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
