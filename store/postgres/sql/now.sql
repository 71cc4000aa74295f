SELECT rdv_now()
