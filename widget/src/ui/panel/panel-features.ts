import { isTeam } from '../../../../browser/team.ts'
import type { ServiceClient } from '../../client/client.ts'
import type { FormKind, MessageAuthor, WidgetMessage } from '../../client/types.ts'
import { element } from '../elements/elements.ts'
import type { FormView } from '../forms/form-view.ts'
import type { Dates } from '../languages/dates.ts'
import type { WidgetTexts } from '../languages/en.ts'
import { withActivity } from '../messages/activity-lines.ts'
import type { MessageLog } from '../messages/message-log.ts'
import type { LoadPart, Parts } from '../parts.ts'
import type { RequestCard } from '../requests/request-card.ts'
import type { Composer } from './composer.ts'
import type { Header } from './header.ts'
import { createRatingPlace } from './rating-place.ts'

interface PanelFeaturesDeps {
  client: ServiceClient
  texts: WidgetTexts
  header: Header
  log: MessageLog
  dates: Dates
  composer: Composer
  announce(text: string): void
  conceal(isHidden: boolean): void
  addStyles(css: string): void
  loadPart: LoadPart
  /**
   * Called when the activity lines of the message log change. They show conversation events that
   * are not messages.
   */
  onLines(): void
}

/** Adds the assigned agent, typing indicators, forms and agents' requests to the panel. */
export function createPanelFeatures(deps: PanelFeaturesDeps) {
  const { client, texts, header, log, composer, announce, conceal, onLines } = deps
  const place = element('div', { class: 'form-place', tabindex: '-1', hidden: true })
  const cards = element('div', { class: 'requests', hidden: true })
  const offer = element('button', { class: 'quiet offer', type: 'button', hidden: true }, texts.leaveDetails)
  const aboveComposer = element('div', { class: 'above-composer' }, cards, offer)
  const showRating = createRatingPlace({ ...deps, place: aboveComposer })
  const views = new Map<FormKind, FormView>()
  const skipped = new Set<FormKind>()
  let requestCard: Parts['requests'] | undefined
  let forms: Parts['forms'] | undefined
  let isLoadingForms = false
  let hasConsentCard = false
  let shownForm: FormKind | undefined
  /** True if the visitor has asked for the offline form during the conversation. */
  let wantsOffline = false
  let card: RequestCard | undefined
  let lines = client.activity()
  let typingName: string | undefined
  let visitorOf = client.session()?.sessionId

  offer.addEventListener('click', () => {
    skipped.delete('offline')
    wantsOffline = true
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
    client.on('config.loaded', () => {
      showForm()
      showRating()
    }),
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
      reportArrivals()
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
    /**
     * `form` is shown instead of the message log. `aboveComposer` contains agents' requests and the
     * link to the offline form, and is shown above the message field.
     */
    form: place,
    aboveComposer,
    isFormShown: () => shownForm !== undefined,
    focusForm,
    withLines: (messages: readonly WidgetMessage[]) =>
      withActivity(messages, client.activity(), {
        texts,
        hasOlder: client.hasOlder(),
        answersFrom: answersFrom(),
      }),
    dispose() {
      card?.dispose()
      for (const unsubscribe of subscriptions) unsubscribe()
    },
  }

  function answersFrom(): string | undefined {
    const { online = true, nextChangeAt = '' } = client.config()?.availability ?? {}
    return !online && Date.parse(nextChangeAt) > Date.now() ? deps.dates.weekday(nextChangeAt) : undefined
  }

  function agentName(): string {
    return (client.presence().agent ?? lastAgent())?.displayName || texts.agent
  }

  /**
   * Returns the author of the newest agent message. Used if no assigned agent is known, for example
   * in a new tab. Returns undefined if the last agent was unassigned.
   */
  function lastAgent(): MessageAuthor | undefined {
    const lastChange = client.activity().findLast(({ type }) => type.startsWith('agent.'))
    if (lastChange?.type === 'agent.unassigned') return undefined
    return client.messages().findLast(({ author }) => isTeam(author))?.author
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
    showRating()
    if (client.activity() !== lines) {
      lines = client.activity()
      onLines()
    }
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

  /** Deletes the forms' views, including the entered values, when the visitor changes. */
  function followVisitor() {
    const sessionId = client.session()?.sessionId
    if (visitorOf && visitorOf !== sessionId) {
      views.clear()
      skipped.clear()
    }
    visitorOf = sessionId
  }

  function showForm() {
    showConsent()
    if (!forms && !isLoadingForms && client.config()?.forms) void loadForms()
    const isOffered = !client.ended() && client.isOfflineFormOffered()
    const begun = shownForm && views.get(shownForm)?.isFilled() ? shownForm : undefined
    // The form has become due while the visitor is writing a message. Keep the message field.
    if (isOffered && !shownForm && composer.draft() && !wantsOffline) skipped.add('offline')
    const due = client.ended()
      ? undefined
      : (client.formDue(begun) ?? (wantsOffline && isOffered ? 'offline' : undefined))
    const wanted = due && !skipped.has(due) ? due : undefined
    const next = forms && wanted
    const { activeElement = null } = place.getRootNode() as ShadowRoot
    // While the form was loading, a panel that opened had the focus itself.
    const waited = activeElement === place.parentElement && !matchMedia('(pointer: coarse)').matches
    const hadFocus = place.contains(activeElement) || (next && (waited || composer.element.contains(activeElement)))
    if (next && place.firstElementChild !== viewOf(next).element) place.replaceChildren(viewOf(next).element)
    shownForm = next
    place.hidden = !next
    log.element.hidden = next !== undefined
    const hides = wanted && isLoadingForms
    // A hidden field would lose the focus to the page.
    if (hides && composer.element.contains(activeElement)) place.parentElement!.focus({ preventScroll: true })
    composer.element.hidden = next !== undefined || hides || client.ended() !== undefined
    offer.hidden = next !== undefined || !isOffered
    if (!hadFocus) return
    if (!next) composer.element.hidden || composer.focus()
    else if (!views.get(next)?.element.contains(activeElement)) focusForm()
  }

  function focusForm() {
    if (shownForm) views.get(shownForm)!.focus()
  }

  function viewOf(kind: FormKind): FormView {
    const known = views.get(kind)
    if (known) return known
    const config = client.config()
    const form = config?.forms?.[kind] ?? { fields: [] }
    const isFree = form.fields.every(({ required }) => !required)
    const view = forms!.createFormView({
      texts,
      form,
      isOffline: kind === 'offline',
      onSubmit: (fields) => void client.submitForm(kind, fields),
      onSkip: kind === 'offline' || isFree ? () => skip(kind) : undefined,
    })
    views.set(kind, view)
    view.show(client.formState(kind))
    return view
  }

  function showConsent() {
    if (hasConsentCard || !client.config()?.consent?.required) return
    hasConsentCard = true
    const leave = () => (shownForm ? focusForm() : composer.focus())
    deps.loadPart('consent').then(
      ({ consentStyles, showConsentCard }) => {
        deps.addStyles(consentStyles)
        void showConsentCard({ client, texts, announce, leave, subscriptions, place: aboveComposer })
      },
      () => {
        // The next event tries again.
        hasConsentCard = false
      },
    )
  }

  async function loadRequestCard() {
    // If the import fails, the next event of an agent's request tries again.
    const module = await deps.loadPart('requests').catch(() => undefined)
    if (!module || requestCard) return
    deps.addStyles(module.requestStyles)
    requestCard = module
    reportArrivals()
    showRequest()
  }

  /** Loads the forms as soon as the configuration has one. If the import fails, the next event tries again. */
  async function loadForms(): Promise<unknown> {
    isLoadingForms = true
    forms = await deps.loadPart('forms').catch(() => undefined)
    isLoadingForms = false
    if (!forms) return composer.element.toggleAttribute('hidden', client.ended() !== undefined)
    deps.addStyles(forms.formStyles)
    showForm()
  }

  /** Reports the results of accepted navigations if a session exists. */
  function reportArrivals() {
    if (client.session()) requestCard?.reportArrivals(client)
  }

  function skip(kind: FormKind) {
    skipped.add(kind)
    wantsOffline = false
    showForm()
    composer.focus()
  }
}
