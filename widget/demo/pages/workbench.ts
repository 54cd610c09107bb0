import { html } from './html.ts'
import type { PageSettings } from './page.ts'

/**
 * Network failures that a visitor of the demo can choose for this tab. `scripts/network-trouble.js`
 * simulates them.
 */
const troubles = [
  { mode: 'none', name: 'No trouble', effect: 'Every call goes through unchanged.' },
  {
    mode: 'slow',
    name: 'Slow',
    effect: 'Each call and each answer takes 1.5 seconds longer.',
    watch: 'A message shows “Sending…” until the service has accepted it.',
  },
  {
    mode: 'offline',
    name: 'Offline',
    effect: 'No call reaches the gateway, and the open stream breaks.',
    watch: 'Write something and reload: the message waits, says so, and is sent once when you switch this off.',
  },
  {
    mode: 'lost',
    name: 'Answers lost',
    effect: 'The gateway stores messages, but its answers never arrive.',
    watch: 'The widget retries with the same operation id. The message appears once.',
  },
  {
    mode: 'frozen',
    name: 'Stream half dead',
    effect: 'The stream stays open, but its bytes are held back until you switch this off.',
    watch: 'Sending works. After two and a half missed heartbeats the widget reconnects; nothing is lost.',
  },
  {
    mode: 'busy',
    name: 'Errors 503',
    effect: 'Each call is answered 503 with “Retry-After: 5”, and the stream ends.',
    watch: 'Compare the times in the event log: no call is repeated within five seconds.',
  },
]

/**
 * Drawer for integrators with things to try, simulated network failures and the event log.
 * `scripts/workbench.js` controls it.
 */
export function workbench({ gatewayUrl, agentCommand, signsIdentity }: PageSettings) {
  const tabs = [
    { id: 'try', name: 'Try it', content: tryPanel() },
    { id: 'network', name: 'Network', content: networkPanel },
    { id: 'events', name: 'Events', content: eventsPanel },
  ]
  return html`
    <button class="workbench-opener" type="button" aria-controls="workbench" aria-expanded="false" aria-keyshortcuts="Alt+Shift+E">
      <span class="light" aria-hidden="true"></span>Workbench<span class="trouble"></span>
    </button>
    <aside class="workbench" id="workbench" aria-label="Workbench" hidden>
      <div class="head"><h2>Workbench</h2><button class="close" type="button" aria-label="Close the workbench">×</button></div>
      <div role="tablist" aria-label="Workbench">${tabs.map(
        ({ id, name }) =>
          html`<button type="button" role="tab" id="tab-${id}" aria-controls="panel-${id}">${name}</button>`,
      )}</div>
      ${tabs.map(
        ({ id, content }) =>
          html`<div class="panel" role="tabpanel" id="panel-${id}" aria-labelledby="tab-${id}" tabindex="0" hidden>${content}</div>`,
      )}
    </aside>`

  function tryPanel() {
    return html`
      <p>The shop is made up. The chat is real: every message goes through gateway, core and database on this machine.</p>
      <p class="identity" role="status">The chat has no session on this page yet.</p>
      <ol>
        <li><h3>Write</h3><p>Open the chat in the corner and ask something. Go to another page: the chat continues there.</p></li>
        <li><h3>Answer</h3><p>Open the <a href="${gatewayUrl}/console" target="_blank" rel="noopener">console</a> in another window and reply as the agent. The link that <code>npm start</code> printed signs you in.</p>
          ${agentCommand && html`<p>Or answer the latest conversation from a shell:</p><pre tabindex="0" aria-label="Command that replies">${agentCommand}</pre>`}</li>
        ${signsIdentity && html`<li><h3>Sign in</h3><p><a href="/account">Choose an account</a>, and the agent sees a verified name. Switch accounts: the other person sees nothing of your chat.</p></li>`}
        <li><h3>Break it</h3><p>Under “Network”, make the connection slow, half dead or offline. Each message still arrives once, and the chat never shows an unsent message as sent.</p></li>
        <li><h3>Look inside</h3><p>“Events” lists every event that your own page would receive. Alt + Shift + E opens it from anywhere.</p></li>
      </ol>`
  }
}

const networkPanel = html`<fieldset>
  <legend>What should go wrong between this tab and the gateway?</legend>
  ${troubles.map(
    ({ mode, name, effect, watch }) => html`<label class="choice">
      <input type="radio" name="trouble" value="${mode}">
      <span><strong>${name}</strong><br>${effect}${watch && html`<span class="watch">${watch}</span>`}</span>
    </label>`,
  )}
  <p class="note">The page wraps its own fetch for this; the widget does not know. The choice holds for this tab until you switch it off.</p>
</fieldset>`

const eventsPanel = html`
  <div class="tools">
    <input type="search" placeholder="message.…" aria-label="Filter by name or content">
    <button class="copy" type="button">Copy</button>
    <button class="clear" type="button">Clear</button>
  </div>
  <p class="note" id="no-events">Nothing here yet. Open the chat and write something.</p>
  <ol class="entries" aria-label="Events, newest first"></ol>
  <p class="note">Events that your own page receives from the widget. Credentials are hidden. Calls show path, status and time only.</p>`
