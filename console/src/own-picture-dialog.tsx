import { initialsOf } from '../../browser/initials.ts'
import { useConsole } from './console-context.ts'
import { Dialog } from './ui/dialog.tsx'
import { PictureField } from './ui/picture-field.tsx'

/** Dialog in which an operator sets the picture that visitors see. */
export function OwnPictureDialog({ onClose }: { onClose: () => void }) {
  const { api, session, holder } = useConsole()
  return (
    <Dialog title="Your picture" onClose={onClose}>
      <div class="stack dialog-body">
        <PictureField
          name="Picture"
          hint="Visitors see it beside your answers. It is cut to a square, and made small in this browser."
          shape="face"
          initials={initialsOf(session.displayName)}
          url={holder.face.value}
          onSave={async (picture) => holder.setFace((await api.messaging.setAgentPicture(picture)).avatarUrl)}
        />
      </div>
    </Dialog>
  )
}
