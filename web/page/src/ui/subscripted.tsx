/** Shows "W_O" with a subscript, but "masked_scores" as it is. The underscore is invisible, but copied and read aloud. */
export function Subscripted({ children }: { children: string }) {
  return (
    <>
      {children.split(/(?<=\b[A-Za-z])(_\w+)/).map((piece, i) =>
        piece.startsWith('_') ? (
          <sub key={i}>
            <span class="unseen">_</span>
            {piece.slice(1)}
          </sub>
        ) : (
          piece
        ),
      )}
    </>
  );
}
