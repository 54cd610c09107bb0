import { useState } from 'preact/hooks'
import { type Invitation, type Operator, OperatorRole, type Session } from '#proto/operator/v1/operator_pb.js'
import { initialsOf } from '../../../browser/chat/initials.ts'
import { useConsole } from '../console-context.ts'
import { chooseLanguage, inSentence, language, languages } from '../language.ts'
import { assignsAnswered, opensNext } from '../storages.ts'
import { Picture } from '../ui/avatar.tsx'
import { ActionButton, CopyField, DialogButton } from '../ui/dialog.tsx'
import { Form, Select, SelectField, TextField, Toggle, useForm } from '../ui/form.tsx'
import { type Loaded, LoadedList, useAction, useLoad } from '../ui/load.tsx'
import { Button, Card, FailureNotice, Notice, Page, RowText, When } from '../ui/page.tsx'
import { OwnAccount } from './own-account.tsx'

const roleNames: Record<OperatorRole, string> = {
  [OperatorRole.UNSPECIFIED]: 'Single sign-on',
  [OperatorRole.OWNER]: 'Owner',
  [OperatorRole.OPERATOR]: 'Operator',
  [OperatorRole.VIEWER]: 'Viewer',
}
const choices = [OperatorRole.OWNER, OperatorRole.OPERATOR, OperatorRole.VIEWER].map(
  (role) => [String(role), roleNames[role]] as const,
)
const roleHint = 'Owners may change everything. Operators answer. Viewers only read.'
const methods: Record<string, string> = {
  link: 'with a link',
  invitation: 'with an invitation',
  mail: 'with a mailed link',
  passkey: 'with a passkey',
  provider: 'with single sign-on',
  token: 'with a token',
}

/** Who may sign in, and how the operator does. */
export function TeamView() {
  const { api, session } = useConsole()
  const mayManage = session.scopes.includes('workspaces:write')
  const maySee = session.scopes.includes('workspaces:read')
  const members = useLoad(async () => (maySee ? (await api.operators.listOperators({})).operators : []), [])
  const invitations = useLoad(async () => (maySee ? (await api.operators.listInvitations({})).invitations : []), [])
  const sessions = useLoad(async () => (await api.operators.listSessions({})).sessions, [])
  const reload = () => void Promise.all([members.reload(), invitations.reload(), sessions.reload()])
  // Owners see the sessions of all members. Others see their own ones.
  const sessionsCard = <Sessions sessions={sessions} />
  return (
    <Page title="Team" lead="Everyone who signs in to this console.">
      {maySee && <h2>Everyone</h2>}
      {maySee && <Members {...{ members, mayManage }} onChange={reload} />}
      {mayManage && <Invite onChange={reload} />}
      {maySee && <Invitations {...{ invitations, mayManage }} />}
      {mayManage && sessionsCard}
      <h2>You</h2>
      {session.account ? (
        <OwnAccount onChange={reload} />
      ) : (
        <Notice tone="info">
          You are signed in without an account. Invite yourself, and open the link, to have a passkey.
        </Notice>
      )}
      <ThisBrowser />
      {!mayManage && sessionsCard}
    </Page>
  )
}

/** Choices that each browser has for itself. */
function ThisBrowser() {
  return (
    <Card title="This browser">
      <Toggle
        label="An answer assigns the conversation to me"
        hint="If nobody has it yet."
        checked={assignsAnswered.value}
        onChange={(on) => (assignsAnswered.value = on)}
      />
      <Toggle
        label="Open the next conversation after Send and close"
        hint="The one that waits longest."
        checked={opensNext.value}
        onChange={(on) => (opensNext.value = on)}
      />
      <SelectField label="Language" value={language} options={Object.entries(languages)} onChange={chooseLanguage} />
    </Card>
  )
}

interface MembersProps {
  members: Loaded<Operator[]>
  mayManage: boolean
  onChange: () => void
}

function Members({ members, mayManage, onChange }: MembersProps) {
  const { api, session } = useConsole()
  const { busy, failure, run } = useAction()
  const [link, setLink] = useState<{ name: string; secret: string }>()
  const setRole = ({ operatorId, name }: Operator, role: OperatorRole) =>
    run(
      () => api.operators.setOperatorRole({ operatorId, role }).finally(onChange),
      `${name} is now ${inSentence(roleNames[role])}.`,
    )
  const createLink = ({ operatorId, name }: Operator) =>
    run(async () => setLink({ name, secret: (await api.operators.inviteOperator({ operatorId })).secret }))
  return (
    <Card title="Members">
      <LoadedList loaded={members} what="members" empty="Nobody has an account yet." kind="table team">
        {(member) => (
          <li key={member.operatorId} class="table-row">
            <Picture initials={initialsOf(member.name)} url={member.avatarUrl} />
            <RowText title={member.operatorId === session.operator ? `${member.name} (you)` : member.name}>
              {member.mail || 'No mail address'}
            </RowText>
            {mayManage && member.role !== OperatorRole.UNSPECIFIED ? (
              <Select
                class="input role"
                aria-label={`Role of ${member.name}`}
                value={String(member.role)}
                options={choices}
                disabled={busy}
                onChange={(role, select) => {
                  // Shows the stored role until the change is accepted.
                  select.value = String(member.role)
                  void setRole(member, Number(role))
                }}
              />
            ) : (
              <span class="tag">{roleNames[member.role]}</span>
            )}
            {mayManage && (
              <>
                {member.role !== OperatorRole.UNSPECIFIED && (
                  <Button
                    kind="small"
                    disabled={busy}
                    aria-label={`Sign-in link for ${member.name}`}
                    onClick={() => createLink(member)}
                    text="Link"
                  />
                )}
                <DialogButton
                  button="Remove"
                  label={`Remove ${member.name}`}
                  title={`Remove ${member.name}?`}
                  action="Remove"
                  danger
                  onConfirm={() => api.operators.removeOperator({ operatorId: member.operatorId }).then(onChange)}
                  done={`${member.name} is removed.`}
                >
                  <p>
                    {member.name} is signed out everywhere at once, and cannot sign in again. Conversations keep the
                    name.
                  </p>
                </DialogButton>
              </>
            )}
          </li>
        )}
      </LoadedList>
      <FailureNotice failure={failure} />
      {link && <LinkToCopy secret={link.secret} text={`It signs in ${link.name}, for example after a lost passkey.`} />}
    </Card>
  )
}

function LinkToCopy({ secret, text }: { secret: string; text: string }) {
  const hint = `${text} It works once, within seven days. It is shown only now.`
  return <CopyField label="Link to copy" hint={hint} text={`${location.origin}/console/#sign-in=${secret}`} />
}

function Invite({ onChange }: { onChange: () => void }) {
  const { api } = useConsole()
  const [made, setMade] = useState<{ secret: string; text: string }>()
  const form = useForm({
    start: { mail: '', role: String(OperatorRole.OPERATOR) },
    async save({ mail, role }) {
      const { secret, mailed } = await api.operators.inviteOperator({ mail: mail.trim(), role: Number(role) })
      setMade({ secret, text: mailed ? `It was mailed to ${mail.trim()} too.` : 'Send it to your colleague.' })
      form.set({ mail: '' })
      onChange()
    },
    done: 'Invitation created.',
  })
  return (
    <Card title="Invite a colleague">
      <Form form={form} button="Create invitation">
        <TextField
          label="Mail address"
          hint="Optional. You can also send the link yourself."
          inputMode="email"
          maxLength={254}
          {...form.field('mail')}
        />
        <SelectField label="Role" hint={roleHint} options={choices} {...form.field('role')} />
      </Form>
      {made && <LinkToCopy key={made.secret} {...made} />}
    </Card>
  )
}

function Invitations({ invitations, mayManage }: { invitations: Loaded<Invitation[]>; mayManage: boolean }) {
  const { api } = useConsole()
  if (invitations.value?.length === 0) return null
  return (
    <Card title="Open invitations">
      <LoadedList loaded={invitations} what="invitations">
        {({ invitationId, mail, role, operatorId, expiresAt }) => (
          <li key={invitationId} class="table-row">
            <RowText title={mail || 'Link to copy'}>
              {operatorId ? 'Sign-in link' : roleNames[role]}, until <When at={expiresAt} />
            </RowText>
            {mayManage && (
              <ActionButton
                aria-label={`Revoke ${mail || 'the link'}`}
                act={() => api.operators.revokeInvitation({ invitationId }).then(invitations.reload)}
                done="Invitation revoked."
                text="Revoke"
              />
            )}
          </li>
        )}
      </LoadedList>
    </Card>
  )
}

function Sessions({ sessions }: { sessions: Loaded<Session[]> }) {
  const { api } = useConsole()
  return (
    <Card title="Sessions">
      <LoadedList loaded={sessions} what="sessions">
        {({ consoleSessionId, name, current, beganAt, method }) => (
          <li key={consoleSessionId} class="table-row">
            <RowText title={current ? `${name} (this browser)` : name}>
              Since <When at={beganAt} /> {methods[method]}
            </RowText>
            {!current && (
              <ActionButton
                aria-label={`End the session of ${name}`}
                act={() => api.operators.endSession({ consoleSessionId }).then(sessions.reload)}
                done="Session ended."
                text="End"
              />
            )}
          </li>
        )}
      </LoadedList>
    </Card>
  )
}
