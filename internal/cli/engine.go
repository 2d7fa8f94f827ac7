package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/admin"
)

type engineCmd struct {
	Add engineAddCmd `cmd:"" help:"Let a server of whole models take part: llama.cpp's, Ollama, vLLM, SGLang, another swarm, any URL with OpenAI's API."`
	Ls  engineLsCmd  `cmd:"" help:"List the engines and how they are."`
	Rm  engineRmCmd  `cmd:"" help:"Take an engine out; what runs on it goes on to its end."`
}

type engineAddCmd struct {
	administered
	Name      string            `arg:"" help:"What the engine is called here; one of that name is replaced."`
	URL       string            `arg:"" help:"Where its API is, such as http://10.0.0.7:8000; /v1 is understood."`
	Model     map[string]string `help:"Another name for one of its models: ALIAS=NAME. Engines with a model of the same name stand in for each other." placeholder:"ALIAS=NAME"`
	KeyEnv    string            `help:"Environment variable of the gateway's process that holds the engine's API key." placeholder:"VAR"`
	PassKey   bool              `help:"Give the engine what clients send as Authorization, for engines that check the same keys."`
	Resume    bool              `help:"Test its models for whether they continue a completion from a prefix exactly; those that do take over streams that break. It loads each model."`
	Parallel  int               `help:"Requests that it may have at once; more wait here. Any number when absent." placeholder:"N"`
	FirstByte time.Duration     `help:"How long to wait for the first content of an answer; what is usual for it decides when absent." placeholder:"TIME"`
	Silence   time.Duration     `help:"How long a stream may say nothing once it has begun; 1m when absent." placeholder:"TIME"`
	Unseen    bool              `help:"Register it though it may not be there yet."`
}

// Run registers an engine after a look at it.
func (e *engineAddCmd) Run(ctx context.Context, c console) error {
	url, err := control.EngineURL(e.URL)
	if err != nil {
		return usage("engine %s: %w", e.Name, err)
	}
	rec := control.EngineRecord{
		ID: e.Name, URL: url, Aliases: e.Model, KeyEnv: e.KeyEnv, PassKey: e.PassKey, Resume: e.Resume,
		Parallel: e.Parallel, FirstByte: e.FirstByte, Silence: e.Silence, Created: time.Now().UTC(),
	}
	if err := rec.Validate(); err != nil {
		return &UsageError{err}
	}
	client, err := e.open()
	if err != nil {
		return err
	}
	view, err := client.PutEngine(ctx, admin.EngineRequest{Record: rec, Unseen: e.Unseen})
	if err != nil {
		return err
	}
	if e.JSON {
		return printJSON(c.out, view)
	}
	what := "registered; its models will be known once it is there"
	if len(view.Names) > 0 {
		what = "serves " + strings.Join(view.Names, ", ")
	} else if !e.Unseen {
		what = "registered; it has no models yet"
	}
	_, err = fmt.Fprintf(c.out, "%s: %s\n", e.Name, what)
	return err
}

type engineLsCmd struct{ administered }

// Run lists engines.
func (e *engineLsCmd) Run(ctx context.Context, c console) error {
	return listed(ctx, c, e.administered, (*admin.Client).Engines, "ENGINE\tURL\tSTATE\tRUNNING\tFAILED\tFIRST CONTENT\tMODELS\tPROBLEM", func(v control.EngineView) string {
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s", v.Record.ID, v.Record.URL, engineState(v), v.Running,
			engineFailures(v), inMilliseconds(v.FirstMS), orDash(engineModels(v)), orDash(v.Problem))
	})
}

// engineState is the word that matters most.
func engineState(v control.EngineView) string {
	switch {
	case v.State != "up":
		return v.State
	case time.Now().Before(v.Paused):
		return "paused"
	case v.Circuit != "" && v.Circuit != "closed":
		return "circuit " + v.Circuit
	}
	return v.State
}

func engineFailures(v control.EngineView) string {
	sum := int64(0)
	for n := range maps.Values(v.Failures) {
		sum += n
	}
	return fmt.Sprintf("%d of %d", sum, v.Requests)
}

func inMilliseconds(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
}

// engineModels are the names to ask for; those that take over broken streams are
// marked.
func engineModels(v control.EngineView) string {
	const most = 4
	var names []string
	for _, name := range v.Names[:min(len(v.Names), most)] {
		own := name
		if alias, ok := v.Record.Aliases[name]; ok {
			own = alias
		}
		if v.Resumes[own] {
			name += "*"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if more := len(v.Names) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

type engineRmCmd struct {
	administered
	Name string `arg:"" help:"The engine's name, from hecate engine ls."`
}

// Run takes an engine out.
func (e *engineRmCmd) Run(ctx context.Context, c console) error {
	if err := control.ValidateEngineName(e.Name); err != nil {
		return &UsageError{err}
	}
	return e.act(ctx, c, "removed", e.Name, (*admin.Client).RemoveEngine)
}
