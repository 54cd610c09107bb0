import { copyButton, element } from './elements.js'

/**
 * What to play with, and how to be the agent.
 *
 * @param {import('./shop-facts.js').ShopFacts} facts
 * @param {ReturnType<typeof import('./event-log.js').createEventLog>} log
 */
export function tryPanel({ gatewayUrl, agentCommand, customer, signsIdentity }, log) {
  const speaksAs = element('p', { class: 'speaks-as', role: 'status' })
  showIdentity('')
  log.subscribe((entry) => {
    if (entry?.kind === 'event' && entry.name === 'session.ready') showIdentity(entry.text)
  })
  const console = element(
    'a',
    { href: `${gatewayUrl}/console`, target: '_blank', rel: 'noopener' },
    `${gatewayUrl}/console`,
  )
  /** @type {HTMLElement[]} */
  const answer = [element('p', {}, 'Open the console in another window and be the agent: ', console)]
  if (agentCommand) {
    answer.push(
      element('p', {}, 'Or answer the latest conversation from a shell. '),
      element('pre', { tabindex: '0', 'aria-label': 'Command that answers' }, element('code', {}, agentCommand)),
    )
  }
  return element(
    'div',
    { class: 'try' },
    element(
      'p',
      { class: 'opening' },
      'The shop is made up. The chat is real: every word goes through gateway, core and database on this machine.',
    ),
    speaksAs,
    element(
      'ol',
      {},
      step('Write', 'Open the chat in the corner and ask something. Leave to another page: it goes on there.'),
      step('Answer', ...answer, ...(agentCommand ? [copyButton('Copy the command', () => agentCommand)] : [])),
      ...(signsIdentity
        ? [
            step(
              'Be somebody',
              element(
                'p',
                {},
                element('a', { href: '/account' }, customer ? 'Switch person or sign out' : 'Sign in'),
                ', and the agent sees a verified name. Switch, and the other person finds nothing of yours.',
              ),
            ),
          ]
        : []),
      step(
        'Break it',
        'In “Network” the connection becomes slow, half dead or none at all. Each message still comes once, and the chat never says that something was sent which was not.',
      ),
      step(
        'Look inside',
        'In “Events” is all that your own page would hear. Alt + Shift + E gets you there from everywhere.',
      ),
    ),
  )

  /** @param {string} session */
  function showIdentity(session) {
    const name = /"displayName": "([^"]*)"/.exec(session)?.[1]
    const isVerified = session.includes('"verified"')
    if (!session) speaksAs.textContent = 'The chat has no session on this page yet.'
    else
      speaksAs.textContent = isVerified
        ? `The chat speaks for ${name ?? 'a verified customer'}, verified.`
        : 'The chat speaks for an anonymous visitor.'
  }
}

/** @param {string} title @param {(Node | string)[]} content */
function step(title, ...content) {
  return element(
    'li',
    {},
    element('h3', {}, title),
    ...content.map((part) => (typeof part === 'string' ? element('p', {}, part) : part)),
  )
}
