import { safeHref } from '../../../../browser/chat/linkify.ts'
import type { ConsentKeeper } from '../../features/consent.ts'
import type { ConsentDecision } from '../../vocabulary/types.ts'
import { box, button, element, hasFocus, setAttributes, showText } from '../elements/elements.ts'
import type { PanelParts } from '../panel/panel-parts.ts'

interface ConsentCardPlace {
  leave(): void
  /** The card adds its subscriptions here. They end with the panel. */
  subscriptions: (() => void)[]
  place: HTMLElement
}

/** Messages that the visitor sends before the decision wait for it. */
export async function showConsentCard(
  { client, texts, announce }: PanelParts,
  { leave, subscriptions, place }: ConsentCardPlace,
) {
  const consent: ConsentKeeper = await client.consent()
  const title = element('h3', { id: 'consent-title', tabindex: '-1' }, texts.consentTitle)
  const told = element('p', { id: 'consent-told' })
  const decide = (decision: ConsentDecision) => consent.state()?.isSending || consent.decide(decision)
  const agree = button('primary', texts.consentAgree, () => decide('granted'))
  const decline = button('secondary', texts.consentDecline, () => decide('denied'))
  const review = button('secondary', texts.consentReview, reopen)
  const problem = element('p', { class: 'field-problem', role: 'alert', hidden: true })
  const card = element(
    'section',
    { class: 'consent', 'aria-labelledby': 'consent-title', hidden: true },
    title,
    told,
    problem,
    box('actions', agree, decline, review),
  )
  let shown: string | undefined
  place.append(card)
  subscriptions.push(
    client.on('consent.changed', show),
    client.on('connection.changed', show),
    client.on('panel.opened', () => tell()),
    client.on('message.queued', () => consent.state()?.status !== 'granted' && askNow()),
    client.on('form.changed', ({ state }) => {
      if (state.status === 'sending' && consent.state()?.status === 'asked') askNow()
    }),
  )
  show()

  function show() {
    const state = client.ended() ? undefined : consent.state()
    const hadFocus = hasFocus(card)
    const status = state?.status ?? 'granted'
    card.hidden = status === 'granted'
    title.hidden = agree.hidden = decline.hidden = status !== 'asked'
    review.hidden = status !== 'denied'
    agree.textContent = state?.isSending ? texts.consentSaving : texts.consentAgree
    for (const each of [agree, decline]) setAttributes(each, { 'aria-disabled': String(state?.isSending === true) })
    showText(problem, state?.error && texts.consentFailed)
    // The shown text depends on these values. Do not replace the text if none of them has changed.
    const seen = [status, state?.policyVersion, state?.policyUrl, state?.isHolding].join()
    if (seen === shown) return
    const isNew = shown?.split(',', 2).join() !== seen.split(',', 2).join()
    shown = seen
    told.replaceChildren(...(status === 'denied' ? [texts.consentDeclined] : explanation(state!)))
    if (isNew) tell()
    if (!hadFocus) return
    if (status === 'granted') leave()
    else if (status === 'denied') review.focus()
    else title.focus()
  }

  function explanation({ policyUrl, isHolding }: { policyUrl?: string; isHolding?: boolean } = {}): (Node | string)[] {
    const href = safeHref(policyUrl ?? '')
    const hint = element('span', { class: 'visually-hidden' }, ` (${texts.opensInNewTab})`)
    return [
      `${texts.consentExplained} ${isHolding ? `${texts.consentHolding} ` : ''}`,
      ...(href
        ? [element('a', { href, target: '_blank', rel: 'noopener noreferrer' }, texts.consentPolicy, hint)]
        : []),
    ]
  }

  function isVisible() {
    return !card.hidden && card.getClientRects().length > 0
  }

  /** Announces the step to screen readers if the panel is open. */
  function tell() {
    if (isVisible()) announce(`${title.hidden ? '' : `${texts.consentTitle}. `}${told.textContent}`)
  }

  function reopen() {
    consent.reopen()
    title.focus()
  }

  /** Called when the visitor has sent something that needs consent. */
  function askNow() {
    queueMicrotask(() => {
      show()
      if (isVisible() && !title.hidden) title.focus()
    })
  }
}
