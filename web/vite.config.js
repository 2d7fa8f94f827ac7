import { defineConfig } from 'vite';

// The page is one file: script, style and typeface stand in the HTML, so that
// the first load is one request and the policy of the page can name the one
// script and the one style by their hashes.
function oneFile() {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_, bundle) {
      const html = bundle['index.html'];
      const take = (end) => {
        const name = Object.keys(bundle).find((n) => n.endsWith(end));
        const { code, source } = bundle[name];
        delete bundle[name];
        return code ?? String(source);
      };
      const script = take('.js').replaceAll('</script', '<\\/script').trim();
      const style = take('.css').trim();
      html.source = String(html.source)
        .replace(/\s*<link rel="stylesheet"[^>]*>/, '')
        .replace(/\s*<script type="module"[^>]*><\/script>/, '')
        .replace('</head>', () => `<style>${style}</style>\n</head>`)
        .replace('</body>', () => `<script type="module">${script}</script>\n</body>`);
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: process.env.OUT_DIR ?? '../internal/web/dist',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 200_000,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
  },
});
