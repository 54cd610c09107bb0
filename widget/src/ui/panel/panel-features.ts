import { isTeam } from '../../../../browser/chat/messages.ts'
import type { WidgetMessage } from '../../vocabulary/types.ts'
import { authorName } from '../elements/author.ts'
import { box, element, hasFocus } from '../elements/elements.ts'
import type { RatingCard } from '../forms/rating-card.ts'
import { withActivity } from '../messages/activity-lines.ts'
import type { MessageLog } from '../messages/message-log.ts'
import type { LoadPart } from '../parts.ts'
import type { RequestCard } from '../requests/request-card.ts'
import type { Composer } from './composer.ts'
import type { Header } from './header.ts'
import { latePart } from './late-part.ts'
import type { PanelParts } from './panel.ts'
import { createPanelForms } from './panel-forms.ts'

interface PanelFeaturesDeps extends PanelParts {
  addStyles(css: string): void
  loadPart: LoadPart
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
  const forms = createPanelForms(deps, late)
  const cards = element('div', { class: 'requests', hidden: true })
  const ratingPlace = element('div', { hidden: true })
  const aboveComposer = box('above-composer', ratingPlace, cards, forms.offer)
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
    client.on('form.changed', ({ form, state }) => forms.showState(form, state)),
    client.on('messages.changed', () => {
      forms.followVisitor()
      showPresence()
      showForm()
    }),
    client.on('connection.changed', showForm),
    client.on('session.ready', () => {
      reportArrivals()
      forms.followVisitor()
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
    form: forms.place,
    aboveComposer,
    isFormShown: forms.isShown,
    focusForm: forms.focus,
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
    forms.show()
  }

  function showConsent() {
    if (hasConsentCard || !client.config()?.consent?.required) return
    const part = late()
    if (!part) return
    hasConsentCard = true
    const leave = () => (forms.isShown() ? forms.focus() : composer.focus())
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
}
