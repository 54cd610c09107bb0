import { useState } from 'preact/hooks'
import type { Session } from '#proto/session/v1/session_pb.js'
import { useConsole } from '../../console-context.ts'
import { ActionDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/form.tsx'
import { Button, When } from '../../ui/page.tsx'
import type { Thread } from '../thread.ts'

type ModerationAction = 'revoke' | 'ban' | 'unban'

const addressBans = [
  ['', 'No'],
  ['3600', 'For 1 hour'],
  ['86400', 'For 1 day'],
  ['604800', 'For 7 days'],
  ['2592000', 'For 30 days'],
] as const

interface ModerationProps {
  thread: Thread
  session: Session
  name: string
}

/**
 * Lets the operator revoke the session, ban the visitor and lift the ban. Shows the state that the
 * service reports.
 */
export function Moderation({ thread, session, name }: ModerationProps) {
  const { api, announcer } = useConsole()
  const [asking, setAsking] = useState<ModerationAction>()
  const [reason, setReason] = useState('')
  const [addressBan, setAddressBan] = useState('')
  const { sessionId, state, visitorBanned, addressKnown, addressBannedUntil } = session
  const isVerified = session.identityState === 'verified'
  const dialogs = {
    revoke: {
      title: `Revoke ${name}’s session?`,
      action: 'Revoke session',
      explanation:
        'This session ends within a second on every page where it is open and cannot be reopened. The visitor is notified and can start a new session. The conversation is kept.',
      call: () => api.sessions.revokeSession({ sessionId }),
      done: 'Session revoked.',
    },
    ban: {
      title: `Ban ${name}?`,
      action: 'Ban visitor',
      explanation: `Every active session of this visitor ends within a second. ${
        isVerified ? 'They cannot sign in to the chat again, in any browser.' : 'This tab cannot start a new session.'
      } An anonymous chat from a new tab or a private window stays possible, unless you also ban the network address. The visitor sees that they are banned, but not the reason. You can lift the ban later.`,
      call: () =>
        api.sessions.banVisitor({
          sessionId,
          reason: reason.trim(),
          addressBanSeconds: addressBan === '' ? undefined : Number(addressBan),
        }),
      done: 'Visitor banned.',
    },
    unban: {
      title: `Lift the ban on ${name}?`,
      action: 'Lift ban',
      explanation: 'The visitor can start a new session. Sessions that the ban ended stay ended.',
      call: () => api.sessions.unbanVisitor({ sessionId }),
      done: 'Ban lifted.',
    },
  }
  const dialog = asking && dialogs[asking]

  return (
    <section class="details-section">
      <h3>Moderation {visitorBanned && <span class="tag bad">Banned</span>}</h3>
      {visitorBanned && (
        <p class="hint">
          {isVerified ? 'This verified visitor and this tab' : 'This tab'} cannot start a new session until you lift the
          ban.{' '}
          {addressBannedUntil ? (
            <>
              The network address is banned until <When at={addressBannedUntil} />.
            </>
          ) : (
            'The network address is not banned.'
          )}
        </p>
      )}
      {state === 'banned' && !visitorBanned && (
        <p class="hint">Ban lifted. The visitor can start a new session. This session stays ended.</p>
      )}
      <div class="line">
        {state === 'active' && <Button kind="small" onClick={() => setAsking('revoke')} text="Revoke session" />}
        <Button
          kind={visitorBanned ? 'small' : 'small danger-quiet'}
          onClick={() => setAsking(visitorBanned ? 'unban' : 'ban')}
          text={visitorBanned ? 'Lift ban' : 'Ban visitor'}
        />
      </div>
      {dialog && (
        <ActionDialog
          title={dialog.title}
          action={dialog.action}
          danger={asking !== 'unban'}
          onClose={() => setAsking(undefined)}
          onConfirm={async () => {
            thread.setSession((await dialog.call()).session)
            announcer.say(dialog.done)
          }}
        >
          <p>{dialog.explanation}</p>
          {asking === 'ban' && (
            <>
              <TextField
                label="Reason"
                hint="For your records. Visitors never see it."
                maxLength={512}
                value={reason}
                onChange={setReason}
              />
              {addressKnown ? (
                <>
                  <SelectField
                    label="Also ban the network address"
                    value={addressBan}
                    options={addressBans}
                    onChange={setAddressBan}
                  />
                  {addressBan !== '' && (
                    <p class="hint">
                      Everyone at this address is affected, for example a whole office: new chats are rejected, and open
                      ones end within 15 minutes.
                    </p>
                  )}
                </>
              ) : (
                <p class="hint">The network address of this session is not known, so it cannot be banned.</p>
              )}
            </>
          )}
        </ActionDialog>
      )}
    </section>
  )
}
