"""Common English words, of which canaries of text are made."""

WORDS = """
about above across after again air all almost along also always among animal answer any area around ask away back
bank base be became because bed been before began behind being below best better between big bird black blue board
boat body book both bring brother build built busy but call came can car care carry case certain change check child
city class clear close cold color come common could country cover cross cry cut dark day deep did different do dog
done door down draw drive dry during each early earth east easy eat end enough even ever every example eye face
fall family far farm fast father feet few field fight figure find fire first fish five follow food foot for force
form found four free friend from front full game gave get girl give go gold good great green ground group grow
half hand happen hard have head hear heat help her here high him his hold home horse hot hour house how hundred
idea if inch into island just keep kind king knew know land language large last late laugh lay lead learn leave
left less let letter life light like line list listen little live long look love low machine made main make man
many map mark may mean measure men might mile mind minute miss money moon more morning most mother mountain move
much music must name near need never new next night north note nothing notice noun now number object ocean off
often old once one only open order other our out over own page paper part pass pattern people person picture piece
place plain plan plane plant play point pose possible pound power press problem produce product pull put question
quick rain ran reach read ready real record red remember rest right river road rock room round rule run same saw
say school science sea second see seem self sentence serve set several shape she ship short should show side simple
since sing sit six size sleep slow small snow some song soon sound south space special spell stand star start
state stay step still stood stop story street strong study such sun sure surface table tail take talk teach tell
ten test than that their them then there these thing think this those though thought thousand three through time
told too took top toward town travel tree true try turn two under unit until upon use usual very voice vowel wait
walk want war warm was watch water way week weight well went west what wheel when where which while white who whole
why will wind with wonder wood word work world would write year young
"""
COMMON = tuple(WORDS.split())
