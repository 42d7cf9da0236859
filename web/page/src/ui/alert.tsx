/** Renders nothing without a reason. A field refers to it by id. */
export const Alert = ({ id, what, why }: { id?: string; what?: string | undefined; why: string | false | undefined }) =>
  why ? (
    <p role="alert" id={id} class="error">
      {what && `${what} `}
      {why}
    </p>
  ) : null;
