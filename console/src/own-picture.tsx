import { useState } from 'preact/hooks'
import { initialsOf } from '../../browser/chat/initials.ts'
import { useConsole } from './console-context.ts'
import { Picture } from './ui/avatar.tsx'
import { Dialog } from './ui/dialog.tsx'
import { PictureField } from './ui/picture-field.tsx'

/** The operator's picture. It opens a dialog in which the operator changes it. */
export function OwnPicture() {
  const { api, session, holder } = useConsole()
  const [isOpen, setOpen] = useState(false)
  const initials = initialsOf(session.displayName)
  const url = holder.face.value
  return (
    <>
      <button type="button" class="icon-button" title="Your picture" onClick={() => setOpen(true)}>
        <span class="avatar" aria-hidden="true">
          {initials}
          <Picture url={url} />
        </span>
        <span class="visually-hidden">Your picture</span>
      </button>
      {isOpen && (
        <Dialog title="Your picture" onClose={() => setOpen(false)}>
          <div class="stack dialog-body">
            <PictureField
              name="Picture"
              hint="Visitors see it beside your answers. It is cut to a square, and made small in this browser."
              shape="face"
              initials={initials}
              url={url}
              onSave={async (picture) => holder.setFace((await api.messaging.setAgentPicture(picture)).avatarUrl)}
            />
          </div>
        </Dialog>
      )}
    </>
  )
}
