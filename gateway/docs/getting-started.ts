import { escapeHtml } from '../../contract/html.ts'
import { WIDGET_PREFIX } from '../../contract/public-api.ts'
import steps from './getting-started.json' with { type: 'json' }

const style = `
  body { max-width: 46rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; font: 16px/1.55 system-ui, sans-serif; color-scheme: light dark; }
  pre { overflow-x: auto; padding: 0.9rem 1rem; border-radius: 8px; background: light-dark(#f0f3f2, #1f2624); font-size: 14px; }
  h2 { margin-top: 2rem; font-size: 1.15rem; }
  a { color: light-dark(#0b6b53, #6fd3b5); }
`

export function gettingStartedPage(gateway: string): string {
  const values: Record<string, string> = {
    gateway,
    api: `${gateway}${WIDGET_PREFIX}`,
    headers: `-H "Origin: $SITE" -H 'X-Service-Widget-Version: 1.0'`,
    json: `-H 'Content-Type: application/json'`,
  }
  const shown = (text: string) => escapeHtml(text.replace(/\{(\w+)\}/g, (place, name: string) => values[name] ?? place))
  const sections = steps.map(({ title, text, code }, index) => {
    const commands = code && `\n<pre tabindex="0"><code>${shown(code.join('\n'))}</code></pre>`
    return `<h2>${index + 1}. ${title}</h2>\n<p>${shown(text)}</p>${commands ?? ''}`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Getting started</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Getting started</h1>
<p>From an empty page to a conversation. The commands call this gateway, ${escapeHtml(gateway)}. All calls are in the <a href="/docs/">API reference</a>.</p>
${sections.join('\n')}
</main>
</body>
</html>
`
}
