import { useState } from 'preact/hooks'
import type { Session } from '#proto/session/v1/session_pb.js'
import { useConsole } from '../console-context.ts'
import { Confirm } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import type { Thread } from './thread.ts'

type ModerationAction = 'revoke' | 'ban' | 'unban'

/** Revokes the session, bans the visitor and lifts the ban. Shows the state that the service reports. */
export function Moderation({ thread, session, name }: { thread: Thread; session: Session; name: string }) {
  const { api, announcer } = useConsole()
  const [confirming, setConfirming] = useState<ModerationAction>()
  const [reason, setReason] = useState('')
  const { sessionId, state, visitorBanned } = session
  const close = () => setConfirming(undefined)

  async function apply(call: Promise<{ session?: Session }>, text: string) {
    const answer = await call
    thread.setSession(answer.session)
    announcer.say(text)
  }

  return (
    <section class="details-section">
      <h3>Moderation {visitorBanned && <span class="tag bad">Banned</span>}</h3>
      {visitorBanned && (
        <p class="hint">
          {session.identityState === 'verified'
            ? 'This browser and this verified visitor cannot start a new session until you lift the ban.'
            : 'This browser cannot start a new session until you lift the ban.'}
        </p>
      )}
      {state === 'banned' && !visitorBanned && (
        <p class="hint">Ban lifted. The visitor can start a new session. This session stays ended.</p>
      )}
      <div class="button-row">
        {state === 'active' && (
          <button type="button" class="button small" onClick={() => setConfirming('revoke')}>
            Revoke session
          </button>
        )}
        {visitorBanned ? (
          <button type="button" class="button small" onClick={() => setConfirming('unban')}>
            Lift ban
          </button>
        ) : (
          <button type="button" class="button small danger-quiet" onClick={() => setConfirming('ban')}>
            Ban visitor
          </button>
        )}
      </div>
      {confirming === 'revoke' && (
        <Confirm
          title={`Revoke ${name}’s session?`}
          action="Revoke session"
          danger
          onClose={close}
          onConfirm={() => apply(api.sessions.revokeSession({ sessionId }), 'Session revoked.')}
        >
          <p>
            This session ends within a second on every page where it is open and cannot be reopened. The visitor is
            notified and can start a new session. The conversation is kept.
          </p>
        </Confirm>
      )}
      {confirming === 'ban' && (
        <Confirm
          title={`Ban ${name}?`}
          action="Ban visitor"
          danger
          onClose={close}
          onConfirm={() => apply(api.sessions.banVisitor({ sessionId, reason: reason.trim() }), 'Visitor banned.')}
        >
          <p>
            Every active session of this visitor ends within a second.{' '}
            {session.identityState === 'verified'
              ? 'This verified visitor cannot start a new session, in this browser or any other.'
              : 'This browser cannot start a new session.'}{' '}
            The visitor sees that they are banned, but not the reason. You can lift the ban later.
          </p>
          <TextField
            label="Reason"
            hint="For your records. Visitors never see it."
            maxLength={512}
            value={reason}
            onChange={setReason}
          />
        </Confirm>
      )}
      {confirming === 'unban' && (
        <Confirm
          title={`Lift the ban on ${name}?`}
          action="Lift ban"
          onClose={close}
          onConfirm={() => apply(api.sessions.unbanVisitor({ sessionId }), 'Ban lifted.')}
        >
          <p>The visitor can start a new session. Sessions that the ban ended stay ended.</p>
        </Confirm>
      )}
    </section>
  )
}
