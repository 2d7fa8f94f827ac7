package top

import (
	"context"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Config is what a terminal view needs.
type Config struct {
	Open Open
	// Steer pauses or resumes a node ("pause", "resume"); nil: nobody may from
	// here, and Why says so.
	Steer func(ctx context.Context, node, action string) error
	Why   string
	In    io.Reader
	Out   io.Writer
}

// Run shows the swarm until the user leaves or ctx ends.
func Run(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &model{cfg: cfg, ctx: ctx, picture: NewPicture(), screen: Screen{Dark: true, Now: time.Now()}}
	m.picture.Trouble = "Connecting..."
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(cfg.In), tea.WithOutput(cfg.Out))
	done := make(chan struct{})
	go func() {
		defer close(done)
		follow(ctx, cfg.Open, func(n news) { p.Send(n) })
	}()
	_, err := p.Run()
	cancel()
	<-done
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("show the terminal view: %w", err)
	}
	return nil
}

// model is the program's state; bubbletea calls its methods one at a time.
type model struct {
	cfg     Config
	ctx     context.Context
	picture *Picture
	screen  Screen
	chosen  string // node
}

// tick comes once a second.
type tick time.Time

// steered is the outcome of a command.
type steered struct{ said string }

func everySecond() tea.Cmd {
	return tea.Every(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.Batch(everySecond(), tea.RequestBackgroundColor) }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.screen.Dark = msg.IsDark()
	case tick:
		m.screen.Now = time.Time(msg)
		m.picture.Tick()
		return m, everySecond()
	case news:
		m.hear(msg)
	case steered:
		m.screen.Said = msg.said
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

func (m *model) hear(n news) {
	p := m.picture
	if n.ended != nil {
		p.Connected, p.Trouble = false, n.ended.Error()
		return
	}
	p.Connected = true
	p.Trouble = ""
	if err := p.Apply(n.name, n.data); err != nil {
		p.Trouble = "What the gateway says is not understood: " + err.Error()
	}
	m.place()
}

// place finds the chosen node's line: nodes come and go around it.
func (m *model) place() {
	names := m.picture.NodeNames()
	m.screen.Chosen = max(0, min(m.screen.Chosen, len(names)-1))
	for i, name := range names {
		if name == m.chosen {
			m.screen.Chosen = i
		}
	}
	if len(names) > 0 {
		m.chosen = names[m.screen.Chosen]
	}
}

func (m *model) key(key string) (tea.Model, tea.Cmd) {
	m.screen.Said = ""
	switch key {
	case "q", "ctrl+c", "esc":
		return m, tea.Quit
	case "up", "k":
		m.choose(-1)
	case "down", "j":
		m.choose(+1)
	case "p":
		return m, m.steer("pause")
	case "r":
		return m, m.steer("resume")
	}
	return m, nil
}

func (m *model) choose(by int) {
	names := m.picture.NodeNames()
	if len(names) == 0 {
		return
	}
	m.screen.Chosen = (m.screen.Chosen + by + len(names)) % len(names)
	m.chosen = names[m.screen.Chosen]
}

// steerTime bounds one command.
const steerTime = 10 * time.Second

func (m *model) steer(action string) tea.Cmd {
	node := m.chosen
	if node == "" {
		return nil
	}
	if m.cfg.Steer == nil {
		m.screen.Said = m.cfg.Why
		return nil
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, steerTime)
		defer cancel()
		if err := m.cfg.Steer(ctx, node, action); err != nil {
			return steered{fmt.Sprintf("%s %s: %v", action, node, err)}
		}
		return steered{fmt.Sprintf("%s: %s is done", node, action)}
	}
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen.Draw(m.picture))
	v.AltScreen = true
	v.WindowTitle = "hecate top"
	return v
}
