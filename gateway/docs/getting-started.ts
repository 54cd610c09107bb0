import { escapeHtml } from '../../contract/html.ts'

function stepsAt(gateway: string): { title: string; text: string; code?: string }[] {
  const api = `${gateway}/api/integrations/v1/widget`
  const headers = `-H "Origin: $SITE" -H 'X-Service-Widget-Version: 1.0'`
  const json = `-H 'Content-Type: application/json'`
  return [
    {
      title: 'Put the chat on a page',
      text: 'Add this element to a page of your site. The site key is in the console under Installations. The origin of the page must be among the allowed origins of the installation.',
      code: `<script src="${gateway}/widget.js" data-site-key="pk_demo" defer></script>`,
    },
    {
      title: 'Answer in the console',
      text: `Open ${gateway}/console/ and sign in. A conversation appears when a visitor writes.`,
    },
    {
      title: 'Prepare calls of your own',
      text: 'The chat uses the public API, and so can you. Set the site key and the origin of your site.',
      code: `SITE_KEY=pk_demo\nSITE=http://localhost:8081`,
    },
    {
      title: 'Read the configuration',
      text: 'It names the functions of the installation. No session is needed.',
      code: `curl -sf ${api}/config/$SITE_KEY ${headers}`,
    },
    {
      title: 'Begin a session',
      text: 'The answer contains an access grant for the next calls.',
      code: `GRANT=$(curl -sf ${api}/sessions ${headers} ${json} \\
  -H 'Idempotency-Key: getting-started-session-1' \\
  -d "{\\"publicSiteKey\\":\\"$SITE_KEY\\",\\"clientInstanceId\\":\\"getting-started-browser\\"}" \\
  | sed 's/.*"accessGrant":"\\([^"]*\\)".*/\\1/')`,
    },
    {
      title: 'Send a message',
      text: 'Repeat the same command as often as you like: it stays one message.',
      code: `curl -sf ${api}/messages ${headers} ${json} \\
  -H "Authorization: Bearer $GRANT" -H 'Idempotency-Key: getting-started-1' \\
  -d '{"clientOperationId":"getting-started-1","body":"Hello","contentType":"text"}'`,
    },
    {
      title: 'Read the messages',
      text: 'The history of the conversation, with the answers of the operators.',
      code: `curl -sf "${api}/messages?afterSequence=0" ${headers} -H "Authorization: Bearer $GRANT"`,
    },
    {
      title: 'Follow the conversation',
      text: 'The stream sends each answer when it is written. Stop it with Ctrl+C.',
      code: `curl -sfN "${api}/events?afterSequence=0" ${headers} -H "Authorization: Bearer $GRANT"`,
    },
  ]
}

const style = `
  body { max-width: 46rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; font: 16px/1.55 system-ui, sans-serif; color-scheme: light dark; }
  pre { overflow-x: auto; padding: 0.9rem 1rem; border-radius: 8px; background: light-dark(#f0f3f2, #1f2624); font-size: 14px; }
  h2 { margin-top: 2rem; font-size: 1.15rem; }
  a { color: light-dark(#0b6b53, #6fd3b5); }
`

export function gettingStartedPage(gateway: string): string {
  const steps = stepsAt(gateway).map(
    ({ title, text, code }, index) =>
      `<h2>${index + 1}. ${escapeHtml(title)}</h2>\n<p>${escapeHtml(text)}</p>${
        code === undefined ? '' : `\n<pre tabindex="0"><code>${escapeHtml(code)}</code></pre>`
      }`,
  )
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
${steps.join('\n')}
</main>
</body>
</html>
`
}
