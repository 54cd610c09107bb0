import { type Customer, customers } from './customers.ts'

export interface PageSettings {
  siteKey: string
  gatewayUrl: string
  /** Shell command that replies to the visitor as an agent. The workbench shows this command. */
  agentCommand?: string
  /** True if the shop's backend can sign assertions. */
  signsIdentity: boolean
}

const lamps = [
  { id: 'fjord', name: 'Fjord', price: 189, summary: 'Opal glass on turned ash' },
  { id: 'skog', name: 'Skog', price: 249, summary: 'A wide shade of bent birch' },
  { id: 'myr', name: 'Myr', price: 159, summary: 'A reading lamp with a long arm' },
  { id: 'holm', name: 'Holm', price: 329, summary: 'Three legs of oak, one linen shade' },
  { id: 'vind', name: 'Vind', price: 209, summary: 'Folded paper, light as a sail' },
  { id: 'strand', name: 'Strand', price: 279, summary: 'A slim bow of steel with a glass drop' },
]

/** Network failures that a visitor of the demo can choose. `scripts/network-trouble.js` simulates them. */
const troubles = [
  ['none', 'No trouble', 'Every call goes through unchanged.'],
  ['slow', 'Slow', 'Each call and each answer takes 1.5 seconds longer.'],
  ['offline', 'Offline', 'No call reaches the gateway, and the open stream breaks. Write something and reload.'],
  ['lost', 'Answers lost', 'The gateway stores messages, but its answers never arrive. The message appears once.'],
  ['frozen', 'Stream half dead', 'The stream stays open and silent. The widget notices and reconnects.'],
  ['busy', 'Errors 503', 'Each call is answered 503 with “Retry-After: 5”. No call is repeated within five seconds.'],
]

const paths = ['/', '/lamps', '/account']

/** Returns the answer at a path: a page of the shop, or a page with the status 404. */
export function findPage(path: string, customer: Customer | undefined, settings: PageSettings) {
  const isFound = paths.includes(path)
  const main = isFound ? (path === '/account' ? account(customer, settings) : shop()) : notFound
  return {
    status: isFound ? 200 : 404,
    type: 'text/html; charset=utf-8',
    content: layOut(main, customer, settings),
  }
}

const notFound = '<h1>Page not found</h1><p><a class="button" href="/">Back to the shop</a></p>'

const shop = () => `
  <h1>Lamps for long evenings.</h1>
  <p class="lead">Turned ash, blown glass, bent birch, and a warm light. Made to order in a workshop by the sea.</p>
  <ul class="cards">${lamps.map(card).join('')}</ul>`

const card = ({ id, name, price, summary }: (typeof lamps)[number]) => `
  <li>
    <img src="/art/${id}.svg" width="400" height="340" alt="" loading="lazy">
    <h2>${name} <span>€ ${price}</span></h2>
    <p>${summary}</p>
    <button type="button" data-ask="I have a question about ${name}: ">Ask about ${name}</button>
  </li>`

function account(customer: Customer | undefined, { signsIdentity }: PageSettings) {
  const others = customers.filter(({ id }) => id !== customer?.id)
  const signOut = `
    <p class="lead">${customer?.name} · ${customer?.plan} · ${customer?.orders} orders</p>
    <form method="post" action="/account/sign-out"><button type="submit">Sign out</button></form>`
  return `
    <h1>${customer ? `Hello, ${firstName(customer)}.` : 'Sign in'}</h1>
    ${customer ? signOut : '<p class="lead">Three people have an account here. No password is needed.</p>'}
    <form method="post" action="/account/sign-in" class="people">${others
      .map(
        ({ id, name }) =>
          `<button name="customer" value="${id}" data-name="${name}">${customer ? 'Switch to' : 'Sign in as'} ${name}</button>`,
      )
      .join('')}</form>
    ${signsIdentity ? '<p class="note">The shop’s backend signs a short-lived token that says who you are, and the chat sends it to the service. The agent sees a verified name. The secret stays on the backend.</p>' : ''}`
}

const firstName = ({ name }: Customer) => name.split(' ')[0]!

const layOut = (main: string, customer: Customer | undefined, settings: PageSettings) => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
    <meta name="color-scheme" content="light dark">
    <title>Lamps for long evenings · Nordlicht</title>
    <link rel="icon" href="/favicon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/shop.css">
    <script type="module" src="/scripts/shop.js"></script>
    <script src="/widget.js" data-site-key="${settings.siteKey}" data-api-base-url="${settings.gatewayUrl}" defer></script>
  </head>
  <body data-gateway-url="${settings.gatewayUrl}"${settings.signsIdentity ? ' data-signs-identity' : ''}>
    <header>
      <a class="brand" href="/"><img src="/favicon.svg" alt="" width="34" height="34">Nordlicht</a>
      <nav aria-label="Shop"><a href="/lamps">Lamps</a> <a href="/account">${customer ? firstName(customer) : 'Sign in'}</a></nav>
    </header>
    <main>${main}</main>
    <footer><p>Nordlicht is a demonstration. Nothing here is for sale. The chat in the corner is real.</p></footer>
    ${workbench(settings)}
  </body>
</html>
`

/** Panel for integrators: what to try, network failures and the event log. `scripts/workbench.js` controls it. */
const workbench = ({ gatewayUrl, agentCommand, signsIdentity }: PageSettings) => `
  <button class="opener" type="button" aria-controls="workbench" aria-expanded="false" aria-keyshortcuts="Alt+Shift+E">Workbench<span></span></button>
  <aside id="workbench" aria-label="Workbench" tabindex="-1" hidden>
    <button class="close" type="button" aria-label="Close the workbench">×</button>
    <h2>Workbench</h2>
    <p class="identity" role="status">The chat has no session on this page yet.</p>
    <ol>
      <li>Open the chat and ask something. Go to another page: the chat continues there.</li>
      <li>Reply as the agent in the <a href="${gatewayUrl}/console" target="_blank" rel="noopener">console</a>. The link that <code>npm start</code> printed signs you in.</li>
      ${signsIdentity ? '<li><a href="/account">Sign in</a>: the agent sees a verified name. Another person sees nothing of your chat.</li>' : ''}
    </ol>
    ${agentCommand ? `<pre tabindex="0" aria-label="Command that replies">${agentCommand.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre>` : ''}
    <fieldset>
      <legend>What should go wrong between this tab and the gateway?</legend>
      ${troubles
        .map(
          ([mode, name, effect]) =>
            `<label><input type="radio" name="trouble" value="${mode}"><span><strong>${name}</strong> ${effect}</span></label>`,
        )
        .join('')}
    </fieldset>
    <h3>Events of this page, without credentials</h3>
    <div class="tools">
      <input type="search" placeholder="message.…" aria-label="Filter by name or content">
      <button class="copy" type="button">Copy</button> <button class="clear" type="button">Clear</button>
    </div>
    <p class="note" id="no-events">Nothing here yet. Open the chat and write something.</p>
    <ol class="entries" aria-label="Events, newest first"></ol>
  </aside>`
