import type { ServiceClient } from '../client.ts'
import type { Activity, FormKind, MessageAuthor, WidgetMessage } from '../types.ts'
import { withActivity } from './activity-lines.ts'
import type { Composer } from './composer.ts'
import { element } from './elements.ts'
import type { FormView } from './form-view.ts'
import type { Header } from './header.ts'
import type { MessageLog } from './message-log.ts'
import type { RequestCard } from './request-card.ts'
import type { ShownTexts } from './texts.ts'

export interface PanelFeaturesDeps {
  client: ServiceClient
  texts: ShownTexts
  header: Header
  log: MessageLog
  composer: Composer
  announce(text: string): void
  conceal(isHidden: boolean): void
  addStyles(css: string): void
  /** Shows the messages again: a line among them has changed. */
  onLines(): void
}

export type PanelFeatures = ReturnType<typeof createPanelFeatures>

/** The panel's features beside messages: presence, typing, forms and agents' requests. */
export function createPanelFeatures(deps: PanelFeaturesDeps) {
  const { client, texts, header, log, composer, announce, conceal, onLines } = deps
  const place = element('div', { class: 'form-place', tabindex: '-1', hidden: true })
  const cards = element('div', { class: 'requests', hidden: true })
  const offer = element('button', { class: 'quiet offer', type: 'button', hidden: true }, texts.leaveDetails)
  const views = new Map<FormKind, FormView>()
  const skipped = new Set<FormKind>()
  let formView: typeof import('./form-view.ts') | undefined
  let requestCard: typeof import('./request-card.ts') | undefined
  let shownForm: FormKind | undefined
  let card: RequestCard | undefined
  let lines = client.activity()
  let typingName: string | undefined
  let visitorOf = client.session()?.sessionId

  offer.addEventListener('click', () => {
    skipped.delete('offline')
    showForm()
    views.get('offline')?.focus()
  })
  composer.element.addEventListener('input', ({ target }) => {
    const isEmpty = target instanceof HTMLTextAreaElement && target.value.trim() === ''
    if (isEmpty) client.stopTyping()
    else client.startTyping()
  })
  composer.element.addEventListener('focusout', client.stopTyping)

  const subscriptions = [
    client.on('presence.changed', showPresence),
    client.on('requests.changed', showRequest),
    client.on('navigation.requested', ({ request: { label = '' } }) => {
      announce(`${texts.navigationTitle(agentName())}. ${label}`)
    }),
    client.on('screenshot.requested', ({ request: { purpose = '' } }) => {
      announce(`${texts.screenshotTitle(agentName())}. ${purpose}`)
    }),
    client.on('message.retry.exhausted', ({ message }) =>
      announce(texts.notSentAnnouncement(message.body.slice(0, 80))),
    ),
    client.on('config.loaded', showForm),
    client.on('form.changed', ({ form, state }) => {
      views.get(form)?.show(state)
      showForm()
    }),
    client.on('messages.changed', () => {
      followVisitor()
      showPresence()
      showForm()
    }),
    client.on('connection.changed', showForm),
    client.on('session.ready', () => {
      settleArrivals()
      followVisitor()
      showPresence()
      showForm()
    }),
    client.on('panel.closed', client.stopTyping),
  ]
  showPresence()
  showRequest()
  showForm()

  return {
    /** In the panel's order: the form stands in the place of the log, requests and the offer above the composer. */
    form: place,
    aboveComposer: element('div', { class: 'above-composer' }, cards, offer),
    isFormShown: () => shownForm !== undefined,
    focusForm,
    withLines: (messages: readonly WidgetMessage[]) =>
      withActivity(messages, client.activity(), {
        texts: { ...requestCard?.englishRequestTexts, ...texts },
        hasOlder: client.hasOlder(),
      }),
    dispose() {
      card?.dispose()
      for (const unsubscribe of subscriptions) unsubscribe()
    },
  }

  function agentName(): string {
    return (client.presence().agent ?? lastAgent())?.displayName || texts.agent
  }

  /** The agent who wrote last. Used if no assignment is known, as in a tab that was opened later. */
  function lastAgent(): MessageAuthor | undefined {
    const told = client.activity().findLast(({ type }) => type.startsWith('agent.'))
    if (told?.type === 'agent.unassigned') return undefined
    return client.messages().findLast(({ author }) => author.kind === 'agent')?.author
  }

  function showPresence() {
    const { agent, typing } = client.presence()
    header.setAgent(agent ?? lastAgent())
    const writer = typing.at(-1)
    const name = writer && (writer.displayName || texts.agent)
    if (name !== typingName) {
      typingName = name
      log.setTyping(name)
    }
    if (client.activity() !== lines) {
      lines = client.activity()
      onLines()
    }
    // Outcomes of requests on an earlier page need the texts of the request chunk.
    const isOfRequest = ({ type }: Activity) => /^(navigation|screenshot)\./.test(type)
    if (!texts.requestOutcomes && !requestCard && lines.some(isOfRequest)) void loadRequestCard()
  }

  function showRequest() {
    const [request] = client.ended() ? [] : client.requests()
    if (request && !requestCard) return void loadRequestCard()
    if (card && card.id === request?.id) return card.update(request)
    const hadFocus = card?.element.contains((cards.getRootNode() as ShadowRoot).activeElement)
    card?.dispose()
    card = request && requestCard!.createRequestCard(request, { client, texts, agentName: agentName(), conceal })
    cards.replaceChildren(...(card ? [card.element] : []))
    cards.hidden = !card
    if (request) card?.update(request)
    if (hadFocus) composer.focus()
  }

  /** Clears the forms when the visitor changes. */
  function followVisitor() {
    const sessionId = client.session()?.sessionId
    if (visitorOf && visitorOf !== sessionId) {
      views.clear()
      skipped.clear()
    }
    visitorOf = sessionId
  }

  function showForm() {
    const due = client.ended() ? undefined : client.formDue()
    const next = due && !skipped.has(due) ? due : undefined
    const { activeElement = null } = place.getRootNode() as ShadowRoot
    const hadFocus = place.contains(activeElement) || (next && composer.element.contains(activeElement))
    if (next && !formView) void loadFormView()
    if (next && formView && place.firstElementChild !== viewOf(next).element)
      place.replaceChildren(viewOf(next).element)
    shownForm = next
    place.hidden = !next
    log.element.hidden = next !== undefined
    composer.element.hidden = next !== undefined || client.ended() !== undefined
    offer.hidden = next !== undefined || due !== 'offline'
    if (!hadFocus) return
    if (!next) composer.element.hidden || composer.focus()
    else if (!views.get(next)?.element.contains(activeElement)) focusForm()
  }

  /** Focuses the form, or its place until the form is loaded. */
  function focusForm() {
    if (shownForm) (views.get(shownForm) ?? place).focus()
  }

  function viewOf(kind: FormKind): FormView {
    const known = views.get(kind)
    if (known) return known
    const config = client.config()
    const form = config?.forms?.[kind] ?? { fields: [] }
    const isFree = !config?.consent?.required && form.fields.every(({ required }) => !required)
    const view = formView!.createFormView({
      texts,
      form,
      isOffline: kind === 'offline',
      consent: config?.consent,
      onSubmit: (fields) => void client.submitForm(kind, fields),
      onSkip: kind === 'offline' || isFree ? () => skip(kind) : undefined,
    })
    views.set(kind, view)
    view.show(client.formState(kind))
    return view
  }

  /** Forms are rare, so their code is loaded when the first one is due. */
  async function loadFormView() {
    try {
      const module = await import('./form-view.ts')
      addStyles(module.formStyles)
      formView = module
    } catch {
      // A form that cannot be shown must not stand in the way of the chat.
      skipped.add('preChat').add('offline')
    }
    showForm()
  }

  async function loadRequestCard() {
    // After a failure, the next event of a request loads it again.
    const module = await import('./request-card.ts').catch(() => undefined)
    if (!module || requestCard) return
    addStyles(module.requestStyles)
    requestCard = module
    settleArrivals()
    showRequest()
    onLines()
  }

  /** A page that the visitor agreed to go to, and reached, is no request any more. */
  function settleArrivals() {
    if (client.session()) requestCard?.settleArrivals(client)
  }

  function addStyles(sheets: readonly string[]) {
    for (const css of sheets) deps.addStyles(css)
  }

  function skip(kind: FormKind) {
    skipped.add(kind)
    showForm()
    composer.focus()
  }
}
