import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { App } from './app';
import { run } from './live';
import { applyTheme } from './theme';

applyTheme();
render(<App />, document.getElementById('page')!);
void run();
