/** What went wrong, beside its cause: nothing without a reason. A field names it by its id. */
export const Alert = ({ id, what, why }: { id?: string; what?: string | undefined; why: string | false | undefined }) =>
  why ? (
    <p role="alert" id={id} class="error">
      {what && `${what} `}
      {why}
    </p>
  ) : null;
