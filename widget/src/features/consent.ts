import { createPause } from '../../../browser/pause.ts'
import { retrying } from '../transport/retrying.ts'
import { toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { ConsentDecision, ConsentState, WidgetErrorDetail } from '../vocabulary/types.ts'
import type { FeaturesDeps } from './feature-parts.ts'

const attempts = 5

export type ConsentKeeper = ReturnType<typeof createConsent>

/**
 * Keeps the visitor's decision on the installation's consent policy. Messages and forms wait until
 * the visitor has decided. They are sent if the visitor grants the policy, and fail if the visitor
 * denies it. If the service refuses an operation because consent is missing, the visitor is asked
 * again.
 */
export function createConsent(deps: Omit<FeaturesDeps, 'consented'>) {
  const { api, emitter, config, refreshConfig, consentRecords, grants } = deps
  const { clock, random, newId } = deps.platform
  const pause = createPause(clock)
  let waiting: { resolve(): void; reject(error: WidgetError): void }[] = []
  let isSending = false
  let error: WidgetErrorDetail | undefined
  let wasAsked = false
  /** True if the visitor has denied the policy and wants to decide again. */
  let isReopened = false
  /** True while waiting operations fail after a denial. Operations that start meanwhile fail, too. */
  let isRefusing = false
  emitter.on('config.loaded', settle)
  emitter.on('session.ready', settle)

  return { state, decide, run, reopen }

  /** Returns the state of the consent step, or undefined if no consent is required. */
  function state(): ConsentState | undefined {
    const { required, policyUrl, policyVersion } = config()?.consent ?? {}
    if (!required || !policyVersion) return undefined
    const decision = consentRecords.decided(policyVersion)
    const status = decision === undefined || (decision === 'denied' && isReopened) ? 'asked' : decision
    return { status, policyUrl, policyVersion, isSending, isHolding: waiting.length > 0, error }
  }

  /** Lets a visitor who has denied the policy decide again. */
  function reopen() {
    isReopened = true
    tell()
  }

  /**
   * Sends the visitor's decision on the current policy. Resolves when the service has stored the
   * decision, or when sending has failed. `state` then returns the outcome.
   */
  async function decide(decision: ConsentDecision) {
    const { policyVersion } = state() ?? {}
    if (!policyVersion || isSending) return
    isSending = true
    error = undefined
    tell()
    const operation = newId()
    const withGrant = grants()
    const body = { policyVersion, decision }
    try {
      await retrying(
        () => withGrant((grant) => api.post<object>('/sessions/consent', 'decidedAt', body, operation, grant)),
        { pause, random, attempts },
      )
      isReopened = false
      consentRecords.keep(policyVersion, decision)
    } catch (caught) {
      const failure = toWidgetError(caught)
      // The policy has a new version that the visitor has not seen.
      if (failure.code === 'ValidationFailed') await refreshConfig()
      else error = failure.detail
    }
    isSending = false
    settle()
  }

  /**
   * Waits for the visitor's consent if it is required, then makes the call. Rejects if the visitor
   * denies the policy.
   */
  async function run<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      await granted()
      try {
        return await call()
      } catch (caught) {
        const failure = toWidgetError(caught)
        if (failure.code !== 'ConsentRequired') throw caught
        consentRecords.forget()
        await refreshConfig()
        // The configuration contains no policy yet. The caller can retry later.
        if (!state()) throw new WidgetError(failure.code, { ...failure, retryable: true })
        tell()
      }
    }
  }

  function granted() {
    const status = state()?.status
    if (status === undefined || status === 'granted') return undefined
    if (status === 'denied') {
      if (isRefusing) throw refusal()
      isReopened = true
    }
    const decision = new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }))
    tell()
    return decision
  }

  function settle() {
    const status = state()?.status
    if (status !== 'asked') {
      const ended = waiting
      waiting = []
      isRefusing = status === 'denied'
      clock.setTimeout(() => {
        isRefusing = false
      }, 0)
      for (const { resolve, reject } of ended) status === 'denied' ? reject(refusal()) : resolve()
    }
    tell()
  }

  function tell() {
    const consent = state()
    // Without a required consent, nothing has changed.
    if (consent || wasAsked) emitter.emit('consent.changed', { consent })
    wasAsked = consent !== undefined
  }
}

/** Only the visitor can retry the operation. */
function refusal() {
  const detail: WidgetErrorDetail = { code: 'ConsentRequired', recoverable: true }
  return Object.defineProperty(new WidgetError(detail.code), 'detail', { value: detail })
}
