import { isTeam } from '../../../../browser/chat/messages.ts'
import type { FormField, FormKind, WidgetMessage } from '../../vocabulary/types.ts'
import { authorName } from '../elements/author.ts'
import { box, button, element, hasFocus } from '../elements/elements.ts'
import type { FormView } from '../forms/form-view.ts'
import type { RatingCard } from '../forms/rating-card.ts'
import { withActivity } from '../messages/activity-lines.ts'
import type { MessageLog } from '../messages/message-log.ts'
import { type LoadPart, latePart } from '../parts.ts'
import type { RequestCard } from '../requests/request-card.ts'
import type { Composer } from './composer.ts'
import type { Header } from './header.ts'
import type { PanelParts } from './panel-parts.ts'

interface PanelFeaturesDeps extends PanelParts {
  addStyles(css: string): void
  loadPart: LoadPart
  locale: string
  header: Header
  log: MessageLog
  composer: Composer
  /** Called when the lines of conversation events that are not messages change. */
  onLines(): void
}

/** Adds the assigned agent, typing indicators, forms and agents' requests to the panel. */
export function createPanelFeatures(deps: PanelFeaturesDeps) {
  const { client, texts, header, log, composer, announce, onLines } = deps
  const late = latePart('forms', deps, (part) => {
    if (!part) return void composer.element.toggleAttribute('hidden', client.ended() !== undefined)
    showForm()
    showRating()
  })
  const requestCards = latePart('requests', deps, (part) => {
    if (!part) return
    reportArrivals()
    showRequest()
  })
  const formPlace = element('div', { class: 'form-place', tabindex: '-1', hidden: true })
  const offer = button('quiet offer', texts.leaveDetails, openOffline, { hidden: true })
  const views = new Map<FormKind, FormView>()
  const skipped = new Set<FormKind>()
  let shownForm: FormKind | undefined
  /** True if the visitor has asked for the offline form during the conversation. */
  let wantsOffline = false
  let visitorOf = client.session()?.sessionId
  const cards = element('div', { class: 'requests', hidden: true })
  const ratingPlace = element('div', { hidden: true })
  const aboveComposer = box('above-composer', ratingPlace, cards, offer)
  let rating: RatingCard | undefined
  let hasConsentCard = false
  let card: RequestCard | undefined
  let lines = client.activity()
  let typingName: string | undefined

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
      showDueForm()
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
    form: formPlace,
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

  function answersFrom() {
    const { online = true, nextChangeAt = '' } = client.config()?.availability ?? {}
    return !online && Date.parse(nextChangeAt) > Date.now() ? deps.dates.weekday(nextChangeAt) : undefined
  }

  function agentName() {
    return (client.presence().agent ?? lastAgent())?.displayName || texts.agent
  }

  /**
   * The author of the newest agent message, if no assigned agent is known and none was unassigned. A
   * visitor who has asked for a person since then is not chatting with the bot any more.
   */
  function lastAgent() {
    const lastChange = client.activity().findLast(({ type }) => type.startsWith('agent.'))
    if (lastChange?.type === 'agent.unassigned') return undefined
    return client.messages().findLast(({ author, body }) => isTeam(author) || body === texts.talkToPerson)?.author
  }

  function showPresence() {
    const { agent, typing, isClosed } = client.presence()
    header.setAgent(isClosed ? undefined : (agent ?? lastAgent()))
    const writer = typing.at(-1)
    const name = writer && authorName(writer, texts)
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
    const part = request && requestCards()
    if (request && !part) return
    if (card && card.id === request?.id) return card.update(request)
    const hadFocus = hasFocus(cards)
    card?.dispose()
    card = request && part?.createRequestCard(request, deps, agentName())
    cards.replaceChildren(...(card ? [card.element] : []))
    cards.hidden = !card
    if (request) card?.update(request)
    if (hadFocus) composer.focus()
  }

  function showForm() {
    showConsent()
    showDueForm()
  }

  function showConsent() {
    if (hasConsentCard || !client.config()?.consent?.required) return
    const part = late()
    if (!part) return
    hasConsentCard = true
    const leave = () => (shownForm ? focusForm() : composer.focus())
    void part.showConsentCard(deps, { leave, subscriptions, place: aboveComposer })
  }

  /** Shows the rating and the transcript while the conversation is closed. */
  function showRating() {
    const isClosed = client.presence().isClosed && !client.ended()
    if (isClosed && !rating) {
      rating = late()?.createRatingCard(deps)
      if (rating) ratingPlace.append(rating.element)
    }
    const hadFocus = hasFocus(ratingPlace)
    ratingPlace.hidden = !isClosed || !rating
    if (hadFocus && !isClosed) composer.focus()
    rating?.update()
  }

  function reportArrivals() {
    if (client.session() && client.requests()[0]) requestCards()?.reportArrivals(client)
  }

  function openOffline() {
    skipped.delete('offline')
    wantsOffline = true
    if (!views.get('offline')?.isFilled()) views.delete('offline')
    showDueForm()
    views.get('offline')?.focus()
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

  /** Shows the form that is due instead of the message log. */
  function showDueForm() {
    const forms = client.config()?.forms && late()
    const isOffered = !client.ended() && client.isOfflineFormOffered()
    const begun = shownForm && views.get(shownForm)?.isFilled() ? shownForm : undefined
    // The form has become due while the visitor is writing a message. Keep the message field.
    if (isOffered && !shownForm && composer.draft() && !wantsOffline) skipped.add('offline')
    const due = client.ended()
      ? undefined
      : (client.formDue(begun) ?? (wantsOffline && isOffered ? 'offline' : undefined))
    const wanted = due && !skipped.has(due) ? due : undefined
    const next = forms && wanted
    const { activeElement = null } = formPlace.getRootNode() as ShadowRoot
    // If the panel opened while the form was loading, the panel itself has the focus.
    const waited = activeElement === formPlace.parentElement && !matchMedia('(pointer: coarse)').matches
    const hadFocus = formPlace.contains(activeElement) || (next && (waited || composer.element.contains(activeElement)))
    if (next && formPlace.firstElementChild !== viewOf(next).element) formPlace.replaceChildren(viewOf(next).element)
    shownForm = next
    formPlace.hidden = !next
    log.element.hidden = next !== undefined
    const hides = wanted && late.isLoading()
    // A hidden field would lose the focus to the page.
    if (hides && composer.element.contains(activeElement)) formPlace.parentElement!.focus({ preventScroll: true })
    composer.element.hidden = next !== undefined || hides || client.ended() !== undefined
    offer.hidden = next !== undefined || !isOffered
    if (!hadFocus) return
    if (!next) composer.element.hidden || composer.focus()
    else if (!views.get(next)?.element.contains(activeElement)) focusForm()
  }

  function focusForm() {
    views.get(shownForm!)?.focus()
  }

  function viewOf(kind: FormKind): FormView {
    const known = views.get(kind)
    if (known) return known
    const config = client.config()
    const { fields = [] } = config?.forms?.[kind] ?? {}
    const isFree = fields.every(({ required }) => !required)
    // Who has written a message is not asked for it again (WCAG 3.3.7), but for an address only.
    const own = client.messages().filter(({ author }) => author.kind === 'visitor')
    const isWritten = kind === 'offline' && own.length > 0 && fields.some(({ type }) => type === 'email')
    const isAsked = ({ type, required }: FormField) =>
      !isWritten || type === 'email' || (required && type !== 'textarea')
    const written = fields
      .filter((field) => field.required && !isAsked(field))
      .map(({ name, maxLength }) => [
        name,
        own
          .map(({ body }) => body)
          .join('\n')
          .slice(0, maxLength),
      ])
    const view = late()!.createFormView({
      texts,
      locale: deps.locale,
      form: { fields: fields.filter(isAsked) },
      isOffline: kind === 'offline',
      onSubmit: (given) => void client.submitForm(kind, { ...Object.fromEntries(written), ...given }),
      onSkip: kind === 'offline' || isFree ? () => skip(kind) : undefined,
    })
    views.set(kind, view)
    view.show(client.formState(kind))
    return view
  }

  function skip(kind: FormKind) {
    skipped.add(kind)
    wantsOffline = false
    showDueForm()
    composer.focus()
  }
}
