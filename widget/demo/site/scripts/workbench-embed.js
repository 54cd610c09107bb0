import { copyButton, element } from './elements.js'

/**
 * The code that this shop itself uses, with its own keys in it.
 *
 * @param {import('./shop-facts.js').ShopFacts} facts
 */
export function embedPanel({ siteKey, gatewayUrl }) {
  return element(
    'div',
    { class: 'embed' },
    ...listing(
      'One line on each page',
      `<script src="/widget.js" defer
  data-site-key="${siteKey}"
  data-api-base-url="${gatewayUrl}"></script>`,
      'The address of the page must be among the installation’s origins. Your policy needs script-src for the script and connect-src for the gateway: no unsafe-inline, no unsafe-eval, and Trusted Types may stay enforced.',
    ),
    ...listing(
      'Who is signed in',
      `document.addEventListener('service-widget:start', (event) => {
  event.detail.configure({
    identityProvider: async () => {
      const answer = await fetch('/identity-assertion', { method: 'POST' })
      return answer.status === 200 ? (await answer.json()).assertion : undefined
    },
  })
})
// With a chat going on, when somebody signs in, and out:
await widget.identify({ externalSubject, displayName })
await widget.clearIdentity()`,
      'What the page says of a person counts for nothing. What counts is what your backend signs:',
    ),
    ...listing(
      'On your backend',
      `const assertion = await new SignJWT({ name: customer.name })
  .setProtectedHeader({ alg: 'HS256', typ: 'service-visitor-identity+jwt', kid })
  .setAudience('${siteKey}')
  .setSubject(customer.id)
  .setJti(crypto.randomUUID())
  .setIssuedAt()
  .setExpirationTime('2m')
  .sign(new TextEncoder().encode(secret))`,
      'With jose, or any other JWT library. The secret never leaves the backend, and each token counts once.',
    ),
    ...listing(
      'Listen, write, open',
      `document.addEventListener('service-widget:ready', ({ detail: { widget } }) => {
  const off = widget.on('message.received', ({ message }) => count(message))
  widget.open()
  widget.prefill('My order is NL-2291. ')
})`,
      'The Events tab shows every event as your page would get it.',
    ),
  )
}

/** @param {string} title @param {string} code @param {string} words */
function listing(title, code, words) {
  return [
    element(
      'div',
      { class: 'listing' },
      element('h3', {}, title),
      copyButton('Copy', () => code),
    ),
    element('pre', { tabindex: '0', 'aria-label': title }, element('code', {}, code)),
    element('p', {}, words),
  ]
}
