import type { Grants } from '../session/session.ts'
import { toWidgetError } from '../vocabulary/errors.ts'
import type { Capability, Rating, StreamEvent } from '../vocabulary/types.ts'
import { createAgentRequests } from './agent-requests.ts'
import type { FeatureParts, FeaturesDeps } from './feature-parts.ts'
import { createFeatureRecords } from './feature-record.ts'
import { createForms } from './forms.ts'
import { createPageReports } from './page-reports.ts'
import { createPresence } from './presence.ts'
import { createPresenceReports } from './presence-reports.ts'
import { createVisitorTyping } from './visitor-typing.ts'

export function createFeatures(deps: FeaturesDeps) {
  const { api, platform, emitter, config, messages, consented, consentRecords } = deps
  /** Like `deps.grants`. A refused call whose capability was turned off fetches the configuration again. */
  const grants: Grants = () => {
    const withGrant = deps.grants()
    return (call) =>
      withGrant(call).catch((error) => {
        if (toWidgetError(error).code === 'RouteNotAdvertised') void deps.refreshConfig()
        throw error
      })
  }
  const records = createFeatureRecords(platform.storage, deps.siteKey)
  const may = (capability: Capability) => hasSession && config()?.capabilities[capability] !== false
  const mayReport = (capability: Capability) => may(capability) && consentRecords.mayObserve(config())
  const parts: FeatureParts = { ...deps, records, grants }
  const isOnline = () => platform.lifecycle.isOnline()
  const presence = createPresence(parts)
  const requests = createAgentRequests({ ...parts, presence })
  const forms = createForms({ ...parts, presence }, isLoaded)
  const typing = createVisitorTyping(parts, () => mayReport('typing') && isOnline())
  const pages = createPageReports(parts, () => mayReport('pageContext'))
  const presenceReports = createPresenceReports(parts, () => mayReport('presence') && isOnline())
  /** The last rating that was sent, and its idempotency key. */
  let rated: { input: string; key: string } | undefined
  let hasSession = false
  let isChatShown = false
  /** Id of the conversation whose messages have been loaded. */
  let loaded: string | undefined

  // While consent was missing, nothing was reported, and a form was not sent.
  emitter.on('consent.changed', ({ consent }) => {
    if (consent?.status !== 'granted') return
    pages.update()
    void presenceReports.update()
    if (hasSession) forms.resume()
  })
  platform.lifecycle.subscribe((signal) => {
    // Pages that were open in the meantime may have changed the stored state.
    if (signal !== 'pageshow' || !hasSession) return
    records.load()
    requests.begin()
  })

  emitter.on('session.ready', ({ session: { sessionId } }) => {
    if (![undefined, sessionId].includes(records.current().sessionId)) leave()
    records.begin(sessionId)
    hasSession = true
    checkMessages()
    typing.reset()
    void presenceReports.update()
    requests.begin()
    forms.resume()
  })
  emitter.on('message.queued', () => {
    typing.stops()
    begin()
  })
  emitter.on('messages.changed', ({ messages: { length } }) => {
    loaded = deps.session()?.conversationId
    // The visitor has changed. The old session has ended, and the new one does not exist yet.
    if (!loaded && (hasSession || length === 0)) leave()
    checkMessages()
  })
  emitter.on('connection.changed', ({ state }) => {
    if (state !== 'ended' && state !== 'idle') return
    hasSession = false
    requests.stop()
    forms.stop()
    pages.stop()
    if (state === 'ended') {
      // The page still shows what has happened.
      records.change({ requests: [] })
      records.unstore()
    }
    presence.reset()
  })

  return {
    /** Loads the state that the previous page stored. */
    start: records.load,

    /** Called when the same visitor continues in another session, to which agents' requests do not belong. */
    changeSession(sessionId: string) {
      if (!records.current().sessionId) return
      // Agents' requests belong to the previous session, so they are removed.
      dropRequests(() => records.change({ sessionId, requests: [], handled: [] }))
    },

    handleEvent(event: StreamEvent) {
      if (may('typing') || !event.type.startsWith('typing.')) presence.handleEvent(event)
      requests.handleEvent(event)
    },

    takePage: presence.takePage,

    /** Operations of the client that do not concern messages. */
    operations: {
      /** Reports that the visitor is typing; reports are throttled. Call on each edit of the text. */
      startTyping: typing.writes,
      /** Call when the visitor empties the text or leaves the field. */
      stopTyping: typing.stops,
      /**
       * Reports to operators whether the visitor sees the chat. The widget calls this function. An
       * application that shows the chat in its own interface must call it. A hidden page counts as
       * not shown.
       */
      setChatShown(isShown: boolean) {
        presenceReports.setShown(isShown)
        if (isChatShown && !isShown && hasSession) {
          const key = platform.newId()
          grants()((grant) => api.post('/sessions/close', 'state', { scope: 'panel' }, key, grant)).catch(() => {})
        }
        isChatShown = isShown
      },
      /**
       * Reports the visitor's page after a short delay, without query and fragment. Does nothing if
       * the installation's `pageContext` capability is off.
       *
       * @param page the page to report; by default, the result of `pageContext`
       */
      updatePageContext: pages.update,
      presence: presence.presence,
      /** Returns the conversation events that are not messages, oldest first. */
      activity: presence.activity,
      /** Returns the pending requests of agents, oldest first. */
      requests: () => records.current().requests,
      acknowledgeNavigation: requests.acknowledgeNavigation,
      acknowledgeScreenshot: requests.acknowledgeScreenshot,
      uploadScreenshot: requests.uploadScreenshot,
      dismissRequest: requests.dismiss,
      formDue: forms.due,
      /** Returns true if the offline form can be offered, because the installation is away. */
      isOfflineFormOffered: forms.isOffered,
      /** Returns true if the conversation has no message of a person or bot. */
      isEmpty: () => isLoaded() && !records.current().hasBegun,
      formState: forms.state,
      submitForm: forms.submit,
      /**
       * Rates the closed conversation. `presence().rating` is `given` afterwards, also if the visitor
       * has rated it in another tab. A repeat after a failure with the same rating has an effect once.
       *
       * @throws WidgetError for example `network_error`
       */
      rate,
    },
  }

  async function rate(rating: Rating) {
    const input = JSON.stringify(rating)
    if (rated?.input !== input) rated = { input, key: platform.newId() }
    const { key } = rated
    const withGrant = grants()
    try {
      await consented(() => withGrant((grant) => api.post('/ratings', 'ratedAt', rating, key, grant)))
      presence.setRating('given')
    } catch (error) {
      const { code } = toWidgetError(error)
      if (!code.startsWith('Rating')) throw error
      presence.setRating(code === 'RatingAlreadyGiven' ? 'given' : undefined)
    }
  }

  /** Stops all operations and deletes the stored state of this visitor. */
  function leave() {
    hasSession = false
    forms.reset()
    pages.stop()
    dropRequests(records.forget)
    presence.reset()
  }

  function dropRequests(remove: () => void) {
    const hadRequests = records.current().requests.length > 0
    requests.stop()
    remove()
    if (hadRequests) emitter.emit('requests.changed', { requests: [] })
  }

  function checkMessages() {
    if (messages().some(({ author }) => author.kind !== 'system')) begin()
  }

  /** Returns true if the newest messages are loaded. A new conversation has no messages to load. */
  function isLoaded() {
    const { continuity, conversationId } = deps.session() ?? {}
    return continuity?.state === 'new' || (conversationId !== undefined && conversationId === loaded)
  }

  function begin() {
    if (!records.current().hasBegun) records.change({ hasBegun: true })
  }
}
